#include "layers/shared/strided_iteration.h"

#include <algorithm>

namespace softneuro {
namespace {

// The axes of a layout as they lie in memory.
struct Axes {
  int rank = 0;
  std::array<int64_t, max_axes> size{};

  void push(int64_t dim) { size[static_cast<size_t>(rank++)] = dim; }
  int64_t operator[](int axis) const { return size[static_cast<size_t>(axis)]; }
};

Axes physical_axes(const Shape& shape, const Layout& layout) {
  Axes axes;
  if (shape.rank() == 0) axes.push(1);
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (axis != 1 || layout.kind == Layout::Kind::nchw) axes.push(shape[axis]);
    if (axis == 1 && layout.is_blocked()) axes.push((shape[1] + layout.block - 1) / layout.block);
  }
  if (layout.kind == Layout::Kind::nhwc) axes.push(shape[1]);
  if (layout.is_blocked()) axes.push(layout.block);
  return axes;
}

// Steps of a dense tensor of shape `from`, of the output's rank, along the output's axes: 0 where it is broadcast.
OperandStrides physical_strides(const Shape& from, const Shape& out, const Layout& layout) {
  OperandStrides strides{};
  if (from.rank() == 0) return strides;  // one number in every layout
  const Axes axes = physical_axes(from, layout);
  int64_t stride = 1;
  for (int axis = axes.rank - 1; axis >= 0; --axis) {
    strides[static_cast<size_t>(axis)] = stride;
    stride *= axes[axis];
  }
  const bool nhwc = layout.kind == Layout::Kind::nhwc;
  for (int axis = 0; axis < out.rank(); ++axis) {
    if (from[axis] != 1 || out[axis] == 1) continue;
    const int physical = !nhwc || axis == 0 ? axis : axis == 1 ? axes.rank - 1 : axis - 1;
    strides[static_cast<size_t>(physical)] = 0;
    if (axis == 1 && layout.is_blocked()) strides[static_cast<size_t>(axes.rank - 1)] = 0;
  }
  return strides;
}

// Axes with every operand's strides along them.
struct Nest {
  Axes axes;
  std::array<OperandStrides, OperandPlace::count> strides;

  int last() const { return axes.rank - 1; }
  int64_t stride(size_t who, int axis) const { return strides[who][static_cast<size_t>(axis)]; }
  // True if stepping along `axis` is as many steps along the next as that has.
  bool even(size_t who, int axis) const { return stride(who, axis) == stride(who, axis + 1) * axes[axis + 1]; }
  // True if the same innermost axis is read again and again.
  bool repeats(size_t who) const { return stride(who, last()) == 1 && stride(who, last() - 1) == 0; }

  // Makes one axis of `axis` and the next; its steps are those of the next.
  void join(int axis) {
    const auto drop = [axis](auto& list) { std::copy(list.begin() + axis + 1, list.end(), list.begin() + axis); };
    const int64_t size = axes[axis] * axes[axis + 1];
    drop(axes.size);
    axes.size[static_cast<size_t>(axis)] = size;
    --axes.rank;
    for (OperandStrides& s : strides) drop(s);
  }

  void join_where_even() {
    for (int axis = axes.rank - 2; axis > 0; --axis) {
      if (axes[axis + 1] == 1) {
        for (OperandStrides& s : strides) s[static_cast<size_t>(axis + 1)] = s[static_cast<size_t>(axis)];
      }
      bool joinable = axes[axis] == 1 || axes[axis + 1] == 1;
      if (!joinable) {
        joinable = true;
        for (size_t who = 0; who < OperandPlace::count; ++who) joinable = joinable && even(who, axis);
      }
      if (joinable) join(axis);
    }
  }

  // Rows of one block each, which a or b reads again and again, become one row.
  void join_blocks(int block, StridedOperands& operands) {
    if (block == 1 || axes.rank < 3 || axes[last()] != block || repeats(OperandPlace::a) == repeats(OperandPlace::b))
      return;
    for (size_t who = 0; who < OperandPlace::count; ++who) {
      if (!repeats(who) && !even(who, last() - 1)) return;
    }
    operands[repeats(OperandPlace::a) ? OperandPlace::a : OperandPlace::b].access = Access::block;
    join(last() - 1);
  }
};

}  // namespace

void plan_iteration(const Shape& out, const Layout& layout, const Shape& a, const Shape& b, Grid& grid,
                    StridedOperands& operands) {
  Nest nest{physical_axes(out, layout), {}};
  nest.strides = {physical_strides(out, out, layout), physical_strides(a, out, layout),
                  physical_strides(b, out, layout), physical_strides(out, out, layout)};
  nest.join_where_even();
  nest.join_blocks(layout.block, operands);
  if (nest.axes.rank == 1) nest.axes.push(1);  // an image is one element

  const int rows = nest.axes.rank > 2 ? nest.last() - 1 : -1;
  grid.count = nest.axes[nest.last()];
  grid.rows = rows > 0 ? nest.axes[rows] : 1;
  grid.outer_rank = std::max(nest.axes.rank - 2, 1);
  std::copy_n(nest.axes.size.begin(), grid.outer_rank, grid.outer.begin());
  for (size_t who = 0; who < OperandPlace::count; ++who) {
    StridedOperand& operand = operands[who];
    std::copy_n(nest.strides[who].begin(), grid.outer_rank, operand.outer.begin());
    if (rows > 0) operand.row = nest.stride(who, rows);
    if (grid.count > 1 && nest.stride(who, nest.last()) == 0) operand.access = Access::scalar;
  }
  // Where an image is one element, a scalar operand is one for all images.
  if (grid.count == 1 && out.elements() != 1) {
    if (a.elements() == 1) operands[OperandPlace::a].access = Access::scalar;
    if (b.elements() == 1) operands[OperandPlace::b].access = Access::scalar;
  }
}

void fold_batch(Grid& grid, StridedOperands& operands) {
  if (grid.outer_rank != 1 || grid.rows != 1) return;
  bool dense = true;
  for (const StridedOperand& operand : operands) {
    dense = dense && (grid.outer[0] == 1 || (operand.access == Access::full && operand.outer[0] == grid.count) ||
                      (operand.access == Access::scalar && operand.outer[0] == 0));
  }
  (dense ? grid.count : grid.rows) *= grid.outer[0];
  grid.outer_rank = 0;
  for (StridedOperand& operand : operands) operand.row = dense ? 0 : operand.outer[0];
}

int64_t operand_offset(const Grid& grid, const StridedOperand& operand, const Cell& cell) {
  int64_t at = cell.row * operand.row + (operand.access == Access::full ? cell.column : 0), index = cell.outer;
  for (int axis = grid.outer_rank - 1; axis >= 0; --axis) {
    const auto i = static_cast<size_t>(axis);
    at += index % grid.outer[i] * operand.outer[i];
    index /= grid.outer[i];
  }
  return at;
}

}  // namespace softneuro
