// What routines that only move elements share: their info, the dealing of work, padding lanes, views.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "kernels/copy/copy.h"
#include "layers/contract/routine.h"
#include "layers/shared/grid.h"

namespace softneuro {

// Every dense layout that blobs come in.
std::span<const Layout> all_layouts();
// Every schema of dense blobs that may have to be moved: floats in all layouts, quantized bytes in the plain ones.
std::span<const Schema> moved_schemas();
// Those of integers and booleans, which come row-major alone.
std::span<const Schema> whole_schemas();
// The level whose blocked layout this is, scalar for the plain ones: routines without vector code are of interest only
// where routines with it use the layout.
Isa layout_isa(const Layout& layout);

// Info of a routine without vector code.
RoutineInfo moving_info(const char* type, const char* algorithm, const Schema& in, const Schema& out);
inline RoutineInfo moving_info(const char* type, const char* algorithm, const Schema& schema) {
  return moving_info(type, algorithm, schema, schema);
}
inline RoutineInfo moving_info(const char* type, const char* algorithm, const Layout& layout) {
  return moving_info(type, algorithm, f32_nchw.with(layout));
}
// Info of one with vector code.
RoutineInfo vector_info(const char* type, const char* algorithm, Isa isa, const Layout& in, const Layout& out);

// Info of one with vector code for bytes.
RoutineInfo bytes_info(const char* type, const char* algorithm, Isa isa, const Layout& layout);

Refusal refuse_post_ops(const Problem& problem);

// A blob's image taken as [outer][size][inner] around a logical axis other than 0; `size` counts channel blocks and
// `unit` is the channels in each where the axis is the blocked one.
struct AxisSplit {
  int64_t outer, size, inner;
  int64_t unit;
};
AxisSplit split_axis(const Shape& shape, const Layout& layout, int axis);

// True if the layout holds this shape's elements in row-major order: dimensions of one element do not matter, and
// whole channel blocks of a single pixel are row-major.
bool row_major(const Shape& shape, const Layout& layout);

inline int64_t images(const TensorView& view) { return view.shape.rank() == 0 ? 1 : view.shape[0]; }
// A copy of elements of the views' type, from their starts.
inline CopyJob copy_job(const TensorView& src, const TensorView& dst) {
  return {.src = static_cast<const std::byte*>(src.data),
          .dst = static_cast<std::byte*>(dst.data),
          .bytes = static_cast<int64_t>(dtype_bytes(dst.schema.dtype, 1))};
}
// Sets the lanes past C in the last channel block to zero.
void zero_padding_lanes(const TensorView& view);
// Every element of `src`, whose layout holds them in dst's order.
void copy_blob(const TensorView& src, const TensorView& dst, int threads, const ParallelFor& parallel_for);

// Calls body(src, dst, count) for runs of elements that lie side by side in both, dealt to threads.
template <typename Body>
void for_runs(const TensorView& src, const TensorView& dst, int threads, const ParallelFor& parallel_for,
              const Body& body) {
  const int64_t elements = dst.shape.elements();
  const int64_t length = src.dense() && dst.dense() ? elements : dst.image_elements();
  const int64_t tasks = task_count(elements, threads);
  parallel_for(tasks, [&](int64_t task) {
    const Range part = split_range(elements, tasks, task);
    for (int64_t at = part.begin; at < part.end;) {
      const int64_t image = at / length, offset = at % length, count = std::min(length - offset, part.end - at);
      body(src.at(image * src.strides[0] + offset), dst.at(image * dst.strides[0] + offset), count);
      at += count;
    }
  });
}

// Output is the input's memory. run() copies, for a caller that cannot let the two share it.
class ViewRoutine : public Routine {
 public:
  ViewRoutine(const char* type, const char* algorithm, const Layout& in, const Layout& out,
              DType dtype = DType::float32);
  ViewRoutine(const char* type, const char* algorithm, const Schema& schema)
      : ViewRoutine(type, algorithm, schema.layout, schema.layout, schema.dtype) {}
  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const final;
};

// A Prepared from a callable of (const RunArgs&).
template <typename Run>
class PreparedCall final : public Prepared {
 public:
  explicit PreparedCall(Run run) : run_(std::move(run)) {}
  void run(const RunArgs& args) const override { run_(args); }

 private:
  Run run_;
};
template <typename Run>
std::unique_ptr<const Prepared> prepared_call(Run run) {
  return std::make_unique<PreparedCall<Run>>(std::move(run));
}

}  // namespace softneuro
