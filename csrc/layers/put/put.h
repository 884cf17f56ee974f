// put: a blob whose rows at given indices of an axis are replaced, in its own memory: what becomes of a cache.
#pragma once

#include "layers/contract/layer.h"

namespace softneuro {

struct PutParams {
  int64_t outer, size, inner;  // the blob around the axis
  bool from_end;
};
// Throws Error.
PutParams put_params(const Layer& layer, const Shape& x);
// In which the blob's memory is, and stays. Throws Error.
DType put_storage(const Layer& layer, const TensorDesc& x);

void put_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out);

}  // namespace softneuro
