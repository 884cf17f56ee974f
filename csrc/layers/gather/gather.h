// gather: the element at each place of the indices' shape that lies, along one axis, at the index that is there.
#pragma once

#include "layers/contract/layer.h"

namespace softneuro {

struct GatherParams {
  int axis;
  int64_t size;
  bool from_end;
};

GatherParams gather_params(const Layer& layer, const Shape& x);

void gather_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out);

}  // namespace softneuro
