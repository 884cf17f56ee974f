// Rows of a linear layer's blobs, of which only axis 0 may have a stride of its own, and how they are dealt to threads.
#pragma once

#include <algorithm>

#include "layers/contract/routine.h"
#include "layers/linear/linear.h"
#include "layers/shared/split.h"

namespace softneuro {

struct BlobRows {
  float* data;
  int64_t per_image, image_stride, row_stride;

  explicit BlobRows(const TensorView& view) : data(view.f32()) {
    const int rank = view.shape.rank();
    const int64_t size = view.shape[rank - 1];
    per_image = rank < 3 ? 1 : view.shape.product(1, rank - 1);
    image_stride = rank < 2 ? size : view.strides[0];
    row_stride = rank < 3 ? image_stride : size;
  }
  float* row(int64_t index) const { return data + index / per_image * image_stride + index % per_image * row_stride; }
  // From `begin` on to `end` at most, as far as the stride is the same.
  int64_t run_end(int64_t begin, int64_t end) const {
    if (image_stride == per_image * row_stride) return end;
    return per_image == 1 ? end : std::min(end, (begin / per_image + 1) * per_image);
  }
};

// Rows from `begin` on to `end` at most that one call can do: each blob's with one stride. Kernels give the residual,
// which may be null, the output's stride; where its own is another, it goes row by row.
inline int64_t even_rows(const BlobRows& in, const BlobRows& out, const BlobRows* residual, int64_t begin,
                         int64_t end) {
  end = std::min(in.run_end(begin, end), out.run_end(begin, end));
  if (residual == nullptr) return end;
  return residual->row_stride == out.row_stride ? std::min(end, residual->run_end(begin, end)) : begin + 1;
}

struct EvenRows {
  const float* src;
  float* dst;
  const float* residual;  // null: none
  int64_t src_stride, dst_stride;
  int count;
};

// Calls body for rows, as many at a time as one call can do.
template <typename Body>
void for_even_rows(const RunArgs& args, bool has_residual, Range rows, const Body& body) {
  const BlobRows in(args.in[0]), out(args.out), residual(args.in[has_residual ? 1 : 0]);
  for (int64_t row = rows.begin, end; row < rows.end; row = end) {
    end = even_rows(in, out, has_residual ? &residual : nullptr, row, rows.end);
    body(EvenRows{in.row(row), out.row(row), has_residual ? residual.row(row) : nullptr, in.row_stride, out.row_stride,
                  static_cast<int>(end - row)});
  }
}

// How work is best dealt, as a guess.
inline int likely_linear_split(const LinearParams& p) {
  return static_cast<int>(p.rows > p.k ? SplitBy::rows : SplitBy::panels);
}

// Products of a few rows with all of the weights in one call: `dot` is the kernel's arguments but for the blobs.
template <typename Dot, typename Kernel>
void run_dots(const RunArgs& args, const WorkSplit& split, bool has_residual, int64_t rows, const Dot& dot,
              const Kernel& kernel) {
  SharedWork work(split);
  args.parallel_for(split.tasks, [&](int64_t task) {
    work.for_task(task, [&](int64_t, Range panels, Range) {
      for_even_rows(args, has_residual, {0, rows}, [&](const EvenRows& even) {
        Dot call = dot;
        call.vectors = even.count;
        call.x = even.src;
        call.x_stride = even.src_stride;
        call.dst = even.dst;
        call.dst_stride = even.dst_stride;
        call.epilogue.residual = even.residual;
        kernel(call, static_cast<int>(panels.begin), static_cast<int>(panels.end));
      });
    });
  });
}

// Kernels that read packed panels of outputs, two at a time. Dot: the kernel's arguments, of which those of the blobs
// are not set.
template <typename Dot, typename Kernels>
class PreparedDots final : public PreparedSplit {
 public:
  PreparedDots(const Problem& problem, const LinearParams& p, const Kernels& kernels, const Dot& dot,
               std::shared_ptr<const Packed> packed)
      : PreparedSplit(problem, std::move(packed)), kernels_(kernels), dot_(dot) {
    rows_ = p.rows;
    if (p.rows * p.k == 0) return;
    const auto weights = static_cast<double>(p.k * p.c);
    const int threads =
        worth_threads(2 * static_cast<double>(p.rows) * weights, weights * dot.bits / 8, problem.threads);
    constexpr int64_t unit = 2;
    split_ = WorkSplit(1, ceil_div(p.k, kernels.lanes), 1, threads, SplitBy::panels, unit);
  }

  void run(const RunArgs& args) const override { run_dots(args, split_, residual_, rows_, dot_, kernels_.run); }

 private:
  const Kernels& kernels_;
  Dot dot_;
  int64_t rows_ = 0;
};

inline WorkSplit split_linear(const LinearParams& p, int panels, int threads, SplitBy by) {
  const auto flop = 2.0 * static_cast<double>(p.rows * p.k * p.c);
  const auto bytes = 4.0 * static_cast<double>(p.k * p.c + p.rows * (p.k + p.c));
  return {1, panels, p.rows, worth_threads(flop, bytes, threads), by};
}

}  // namespace softneuro
