// How the operands of an element-wise layer walk through memory: any layout, any NumPy broadcasting.
#pragma once

#include <array>
#include <cstdint>

#include "base/schema.h"
#include "kernels/elementwise/elementwise.h"
#include "layers/grid.h"

namespace softneuro {

using WalkStrides = std::array<int64_t, max_axes>;

// One operand's way through a grid, in elements.
struct Walk {
  WalkStrides outer{};
  int64_t row = 0;
  Access access = Access::full;
  bool batched = false;  // outer[0] is the view's batch stride
};

// The operands by place; b and residual may be stand-ins.
struct Walkers {
  enum Who : size_t { dst, a, b, residual, count };
};
using Walks = std::array<Walk, Walkers::count>;

// Grid over an output in a layout, and the walks of the output, of two operands whose shapes (of the output's rank, or
// of rank 0: one number) broadcast to it and of a residual of its shape. Axis 0 stays an axis of its own,
// grid.outer[0]: its stride may be known only when running. Dense strides are filled in; `batched` is left to the
// caller.
void plan_walks(const Shape& out, const Layout& layout, const Shape& a, const Shape& b, Grid& grid, Walks& walks);

// Makes one row of images that lie one behind the other, and else the rows of one grid, if an image is but a row.
void fold_batch(Grid& grid, Walks& walks);

// Elements from an operand's start to a cell's.
int64_t walk_offset(const Grid& grid, const Walk& walk, const Cell& cell);

}  // namespace softneuro
