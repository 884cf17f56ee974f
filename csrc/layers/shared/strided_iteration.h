// How an element-wise layer iterates over its operands, which lie at strides: any layout, any NumPy broadcasting.
#pragma once

#include <array>
#include <cstdint>

#include "base/schema.h"
#include "kernels/elementwise/elementwise.h"
#include "layers/shared/grid.h"

namespace softneuro {

using OperandStrides = std::array<int64_t, max_axes>;

// One operand's way through a grid, in elements.
struct StridedOperand {
  OperandStrides outer{};
  int64_t row = 0;
  Access access = Access::full;
  bool batched = false;  // outer[0] is the view's batch stride
};

// The operands by place; b and residual may be stand-ins.
struct OperandPlace {
  enum Who : size_t { dst, a, b, residual, count };
};
using StridedOperands = std::array<StridedOperand, OperandPlace::count>;

// Plans a grid over an output in a layout, and the strides in it of the output, of two operands whose shapes (of the
// output's rank, or of rank 0: one number) broadcast to it and of a residual of its shape. Axis 0 stays an axis of its
// own, grid.outer[0]: its stride may be known only when running. Dense strides are filled in; `batched` is left to the
// caller.
void plan_iteration(const Shape& out, const Layout& layout, const Shape& a, const Shape& b, Grid& grid,
                    StridedOperands& operands);

// Makes one row of images that lie one behind the other, and else the rows of one grid, if an image is but a row.
void fold_batch(Grid& grid, StridedOperands& operands);

// Elements from an operand's start to a cell's.
int64_t operand_offset(const Grid& grid, const StridedOperand& operand, const Cell& cell);

}  // namespace softneuro
