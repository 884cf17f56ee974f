// cumsum: sums of all up to each along an axis, or without each, or from the end. Integers wrap around.
#pragma once

#include "layers/contract/layer.h"

namespace softneuro {

struct CumsumParams {
  int axis;
  bool exclusive, reverse;
};

CumsumParams cumsum_params(const Layer& layer, const Shape& x);

void cumsum_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out);

}  // namespace softneuro
