// group_norm: (x - mean) / sqrt(variance + eps) * weight + bias of x[N,C,...]; statistics of each of `groups` runs of
// channels, weight and bias per channel.
#pragma once

#include "layers/layer_norm/reference.h"

namespace softneuro {

// Throws Error about groups that do not divide the channels and weights of another shape than [C].
NormalizedRows group_norm_params(const Layer& layer, const TensorDesc& x);

}  // namespace softneuro
