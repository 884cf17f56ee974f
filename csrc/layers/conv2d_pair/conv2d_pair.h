// conv2d_pair: a convolution with its activation, and the convolution of what it leaves. Put in by plans in place of
// the layers that it covers, and by custom ops; routines take pairs of which a weight is sparse.
//
//   first:  x[N,C,H,W] -> [N,M,H',W'], `first_weight`[M,C/groups,kh,kw], `first_bias`[M], activation `first_*`
//   second: -> [N,K,H",W"], `second_weight`[K,M/groups,kh,kw], `second_bias`[K]; its residual and activation are the
//           layer's own
//
// Each has conv2d's attributes, as `first_*` and `second_*`.
#pragma once

#include "layers/contract/layer.h"
#include "layers/conv2d/shapes.h"

namespace softneuro {

// The stages as the conv2ds that they are: without inputs and outputs, the second without the layer's post-ops.
struct Conv2dPairStages {
  Layer first, second;
  TensorDesc between;  // the blob that is not there
  Conv2dParams p1, p2;
};
// Throws Error about the first thing that is wrong.
Conv2dPairStages conv2d_pair_stages(const Layer& layer, const TensorDesc& in);
inline Conv2dPairStages conv2d_pair_stages(const Problem& problem) {
  return conv2d_pair_stages(*problem.layer, problem.in[0]);
}

// What all routines ask: sizes that kernels count, a sparse weight (two dense convolutions are faster apart).
Refusal check_conv2d_pair(const Conv2dPairStages& stages);

}  // namespace softneuro
