// softmax: exp(x - max) / sum(exp(x - max)) along an axis, or the logarithm of that. A safe one is zero where all is
// -inf.
#pragma once

#include "layers/contract/layer.h"

namespace softneuro {

struct SoftmaxParams {
  int axis = 0;
  bool log = false, safe = false;
};

// Throws Error about an axis that the shape does not have.
SoftmaxParams softmax_params(const Layer& layer, const Shape& shape);

}  // namespace softneuro
