// integer_binary: left (function) right of integers of one type, with NumPy's broadcasting. What the type does not hold
// wraps around.
#pragma once

#include "layers/contract/layer.h"

namespace softneuro {

enum class IntegerOp : unsigned char { add, sub, mul, min, max };

// Throws Error about a function that does not exist.
IntegerOp integer_op(const Layer& layer);

void integer_binary_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out);

}  // namespace softneuro
