// conv_pool: a convolution with its activation, and the pooling of what it leaves. Put in by plans in place of the
// layers that it covers, never by a door.
//
//   conv: x[N,C,H,W] -> [N,K,H',W'], `conv_weight`[K,C/groups,kh,kw], `conv_bias`[K], activation `conv_*`; with
//   `values`[C,256] an image_conv
//   pool: -> [N,K,H",W"], pool2d's attributes as `pool_*`
#pragma once

#include "layers/contract/layer.h"
#include "layers/conv2d/conv2d.h"
#include "layers/pool2d/pool2d.h"

namespace softneuro {

// The stages as the conv2d or image_conv and the pool2d that they are: without inputs and outputs.
struct ConvPoolStages {
  Layer conv, pool;
  TensorDesc between;  // the blob that is not there
};
// Throws Error about the first thing that is wrong.
ConvPoolStages conv_pool_stages(const Layer& layer, const TensorDesc& in);

}  // namespace softneuro
