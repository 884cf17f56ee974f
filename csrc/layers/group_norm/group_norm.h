// group_norm: (x - mean) / sqrt(variance + eps) * weight + bias of x[N,C,...]; statistics of each of `groups` runs of
// channels, weight and bias per channel.
#pragma once

#include "layers/contract/layer.h"

namespace softneuro {

struct GroupNormParams {
  int64_t groups = 1;
  double eps = 0;
};

// Throws Error about groups that do not divide the channels and weights of another shape than [C].
GroupNormParams group_norm_params(const Layer& layer, const TensorDesc& x);

}  // namespace softneuro
