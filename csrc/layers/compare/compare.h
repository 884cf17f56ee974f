// compare: whether left (function) right, with NumPy's broadcasting. Both are reals, integers of one type or booleans.
#pragma once

#include "layers/contract/layer.h"

namespace softneuro {

enum class Comparison : unsigned char { eq, ne, lt, le, gt, ge };

// Throws Error about a function that does not exist.
Comparison comparison_of(const Layer& layer);
template <typename T>
constexpr bool holds(Comparison comparison, T a, T b) {
  switch (comparison) {
    case Comparison::eq:
      return a == b;
    case Comparison::ne:
      return a != b;
    case Comparison::lt:
      return a < b;
    case Comparison::le:
      return a <= b;
    case Comparison::gt:
      return a > b;
    case Comparison::ge:
      return a >= b;
  }
  return false;
}

void compare_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out);

}  // namespace softneuro
