// linear: x[...,C] * weight[K,C]^T + bias[K] -> [...,K].
#pragma once

#include "layers/contract/layer.h"

namespace softneuro {

struct LinearParams {
  int64_t rows = 0;  // product of the leading axes
  int64_t c = 0, k = 0;
};

// Throws Error about the first thing that is wrong with weights or the input.
LinearParams linear_sizes(const Layer& layer, const TensorDesc& in);
// With attributes, of which there are none.
LinearParams linear_params(const Layer& layer, const TensorDesc& in);
inline LinearParams linear_params(const Problem& problem) { return linear_params(*problem.layer, problem.in[0]); }

}  // namespace softneuro
