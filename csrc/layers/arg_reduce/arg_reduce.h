// arg_reduce: where along an axis the greatest or the least is.
#pragma once

#include <cmath>
#include <type_traits>

#include "layers/contract/layer.h"

namespace softneuro {

struct ArgReduceParams {
  bool least, last, nan;
  int axis;
  int64_t outer, size, inner;
};

// Throws Error about a function that does not exist, and an axis that the shape does not have or that has no elements.
ArgReduceParams arg_reduce_params(const Layer& layer, const Shape& x);

// Whether x takes the place of what was found before it.
template <typename T>
bool is_further(const ArgReduceParams& p, T x, T found) {
  if constexpr (std::is_floating_point_v<T>) {
    if (p.nan && std::isnan(found)) return p.last && std::isnan(x);
    if (p.nan && std::isnan(x)) return true;
  }
  return (p.least ? x < found : x > found) || (p.last && x == found);
}

void arg_reduce_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out);

}  // namespace softneuro
