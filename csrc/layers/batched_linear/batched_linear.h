// batched_linear: x[B,M,C] * weight[B,K,C]^T -> [B,M,K], one product per index of the first axis.
#pragma once

#include "layers/contract/layer.h"

namespace softneuro {

struct BatchedLinearParams {
  int64_t batch = 0, rows = 0, c = 0, k = 0;

  bool empty() const { return batch * rows * k == 0; }
};

// Throws Error about the first thing that is wrong with attributes, weights or the input.
BatchedLinearParams batched_linear_params(const Layer& layer, const TensorDesc& in);

}  // namespace softneuro
