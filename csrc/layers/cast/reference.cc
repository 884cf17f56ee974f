#include <algorithm>
#include <cmath>

#include "layers/cast/cast.h"

namespace softneuro {

void cast_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out) {
  const DType to = cast_type(layer);
  std::transform(in[0].data, in[0].data + out.shape.elements(), out.data, [&](double x) {
    if (to == DType::float32) return x;
    return to == DType::boolean ? (x != 0 ? 1.0 : 0.0) : std::trunc(x);
  });
}

}  // namespace softneuro
