// binary: f(left, right) with NumPy's broadcasting; both are inputs, or one is a constant. Some functions are of one
// input alone, without a constant.
#pragma once

#include "kernels/elementwise/elementwise.h"
#include "layers/contract/layer.h"

namespace softneuro {

struct BinaryParams {
  ElementwiseOp function = ElementwiseOp::add;  // a function of two operands, or of one
  int constant = -1;                            // 0: the left operand is constant, 1: the right one is
  Constant other;                               // its values, null for `scalar`
  float scalar = 0;
  Shape left, right, out;
};

void binary_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out);

// Throws Error about a function that does not exist, a constant besides two inputs or none besides one, and shapes that
// do not broadcast.
BinaryParams binary_params(const Layer& layer, std::span<const TensorDesc> in);

}  // namespace softneuro
