// Element by element over operands that are broadcast as in NumPy: row-major blobs of any types.
#pragma once

#include <array>
#include <type_traits>

#include "base/tensor.h"
#include "kernels/integers.h"
#include "layers/shared/grid.h"

namespace softneuro {

// The shape that both are broadcast to. Throws Error.
Shape broadcast_shape(const Shape& a, const Shape& b);

// Operand 0 is what is written, the others are read.
template <size_t count>
class Broadcast {
 public:
  using Steps = std::array<int64_t, count>;

  explicit Broadcast(const std::array<const TensorView*, count>& views) {
    const Shape& out = views[0]->shape;
    for (int axis = 0; axis < out.rank(); ++axis) {
      if (out[axis] == 1) continue;
      Axis added{out[axis], {}};
      for (size_t k = 0; k < count; ++k) {
        const int own = axis - (out.rank() - views[k]->shape.rank());
        const bool moves = own >= 0 && views[k]->shape[own] != 1;
        added.steps[k] = moves ? views[k]->strides[static_cast<size_t>(own)] : 0;
      }
      if (!joins(added)) axes_[used_++] = added;
    }
    if (used_ > 0) inner_ = axes_[--used_];
    for (size_t i = 0; i < used_; ++i) rows_ *= axes_[i].size;
  }

  // Calls body(first, steps, length) for rows: where each operand's first element is, and how far apart the next are.
  template <typename Body>
  void run(int threads, const ParallelFor& parallel_for, const Body& body) const {
    constexpr int64_t most = 4096;
    const int64_t parts = ceil_div(inner_.size, most), items = rows_ * parts;
    if (items == 0) return;
    const int64_t tasks = std::min(items, task_count(rows_ * inner_.size, threads));
    parallel_for(tasks, [&](int64_t task) {
      const Range share = split_range(items, tasks, task);
      for (int64_t item = share.begin; item < share.end; ++item) {
        const Range part = split_range(inner_.size, parts, item % parts);
        Steps first{};
        for (size_t k = 0; k < count; ++k) first[k] = part.begin * inner_.steps[k];
        for (int64_t i = static_cast<int64_t>(used_), rest = item / parts; i-- > 0;) {
          const Axis& axis = axes_[static_cast<size_t>(i)];
          for (size_t k = 0; k < count; ++k) first[k] += rest % axis.size * axis.steps[k];
          rest /= axis.size;
        }
        body(first, inner_.steps, part.end - part.begin);
      }
    });
  }

 private:
  struct Axis {
    int64_t size = 1;
    Steps steps{};
  };

  // Whether the axis is the rest of the one before it, and is now a part of that.
  bool joins(const Axis& added) {
    if (used_ == 0) return false;
    Axis& last = axes_[used_ - 1];
    for (size_t k = 0; k < count; ++k) {
      if (last.steps[k] != added.steps[k] * added.size) return false;
    }
    last = {last.size * added.size, added.steps};
    return true;
  }

  std::array<Axis, Shape::max_rank> axes_{};
  size_t used_ = 0;
  Axis inner_;
  int64_t rows_ = 1;
};

// Calls body with the step as a constant where it is 0 or 1, for which loops become vector code.
template <typename Body>
void with_step(int64_t step, const Body& body) {
  if (step == 1) return body(std::integral_constant<int64_t, 1>());
  if (step == 0) return body(std::integral_constant<int64_t, 0>());
  body(step);
}

// Writes f(a, b) for two operands.
template <typename Out, typename In, typename Function>
void broadcast_two(const TensorView& out, const TensorView& a, const TensorView& b, int threads,
                   const ParallelFor& parallel_for, const Function& f) {
  Out* const to = out.as<Out>();
  const In *const left = a.as<In>(), *const right = b.as<In>();
  Broadcast<3>({&out, &a, &b}).run(threads, parallel_for, [&](const auto& first, const auto& steps, int64_t length) {
    with_step(steps[1], [&](auto x) {
      with_step(steps[2], [&](auto y) {
        for (int64_t i = 0; i < length; ++i) {
          to[first[0] + i * steps[0]] = f(left[first[1] + i * x], right[first[2] + i * y]);
        }
      });
    });
  });
}

// Copies elements of T's size, by any strides.
template <typename T>
void copy_elements(const TensorView& from, const TensorView& to, int threads, const ParallelFor& parallel_for) {
  const auto* const src = static_cast<const T*>(from.data);
  auto* const dst = static_cast<T*>(to.data);
  Broadcast<2>({&to, &from}).run(threads, parallel_for, [&](const auto& first, const auto& steps, int64_t length) {
    with_step(steps[1], [&](auto step) {
      for (int64_t i = 0; i < length; ++i) dst[first[0] + i * steps[0]] = src[first[1] + i * step];
    });
  });
}

// Element `index` of a row-major blob of shape `out`, in an operand of shape `from` that is broadcast to it: for
// references.
int64_t broadcast_source(int64_t index, const Shape& out, const Shape& from);

}  // namespace softneuro
