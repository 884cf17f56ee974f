// A depthwise convolution as its kernels take it.
#pragma once

#include "kernels/conv_depthwise/conv_depthwise.h"
#include "layers/contract/packed.h"
#include "layers/conv2d/conv2d.h"

namespace softneuro {

// With a bias of zeros where the layer has none, if there is to be one.
Packing depthwise_packing(const Conv2dParams& p, const Layer& layer, int block, bool has_bias);
void pack_depthwise(const Conv2dParams& p, const Layer& layer, int block, Packed& to);
// Everything but src, dst and the residual; the activation is the layer's.
ConvDepthwiseArgs depthwise_args(const Conv2dParams& p, const Layer& layer, const Packed& packed);

}  // namespace softneuro
