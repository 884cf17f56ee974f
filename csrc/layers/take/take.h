// take: what lies at given indices of an axis. The run is rejected if there is no such index.
#pragma once

#include "layers/contract/layer.h"

namespace softneuro {

struct TakeParams {
  int64_t outer, size, inner;  // the input around the axis
  bool from_end;
};
// Throws Error.
TakeParams take_params(const Layer& layer, const Shape& x);

void take_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out);

}  // namespace softneuro
