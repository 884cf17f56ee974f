// slice: every step-th index of one axis in [start, end).
#pragma once

#include "layers/contract/layer.h"

namespace softneuro {

struct SliceParams {
  int axis;
  int64_t start, end, step;
};
SliceParams slice_params(const Layer& layer, const Shape& in);

void slice_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out);

}  // namespace softneuro
