// conv1d: x[N,C,L] * weight[K,C/groups,k] + bias[K] -> [N,K,L'], computed as a conv2d of height one.
#pragma once

#include "layers/contract/layer.h"

namespace softneuro {

// The conv2d layer that computes the same, with inputs and output of one more axis (height one). Shares the weights.
Layer conv1d_as_conv2d(const Layer& layer);
// x[N,C,L] -> x[N,C,1,L]: the same memory in every layout.
Shape with_height_one(const Shape& shape);

}  // namespace softneuro
