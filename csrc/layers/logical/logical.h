// logical: left (function) right of booleans, with NumPy's broadcasting, or the opposite of one.
#pragma once

#include "layers/contract/layer.h"

namespace softneuro {

enum class LogicalOp : unsigned char { both, either, one_of, opposite };

// Throws Error about a function that does not exist.
LogicalOp logical_op(const Layer& layer);
constexpr bool holds(LogicalOp op, bool a, bool b) {
  switch (op) {
    case LogicalOp::both:
      return a && b;
    case LogicalOp::either:
      return a || b;
    case LogicalOp::one_of:
      return a != b;
    case LogicalOp::opposite:
      return !a;
  }
  return false;
}

void logical_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out);

}  // namespace softneuro
