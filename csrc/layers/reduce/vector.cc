// reduce in every layout: each run of reduced axes is taken away in a step, innermost first, axis 0 last.
#include "layers/reduce/reduce.h"

#include <cmath>

#include "layers/shared/grid.h"
#include "layers/shared/pointwise.h"

namespace softneuro {
namespace {

// [outer][size][inner] -> [outer][inner]
struct Step {
  int64_t outer, size, inner;
};

// Axes of an image in memory order.
struct ImageAxes {
  std::vector<int64_t> size;
  std::vector<bool> reduced;

  ImageAxes(const Shape& shape, const Layout& layout, const ReduceParams& p) {
    const bool nchw = layout.kind == Layout::Kind::nchw, blocked = layout.is_blocked();
    if (blocked) push((shape[1] + layout.block - 1) / layout.block, false);
    for (int axis = nchw ? 1 : 2; axis < shape.rank(); ++axis) push(shape[axis], p.reduced[static_cast<size_t>(axis)]);
    if (!nchw) push(blocked ? layout.block : shape[1], !blocked && p.reduced[1]);
  }
  void push(int64_t dim, bool is_reduced) {
    if (!reduced.empty() && reduced.back() == is_reduced) {
      size.back() *= dim;
    } else {
      size.push_back(dim);
      reduced.push_back(is_reduced);
    }
  }
};

class PreparedReduce final : public Prepared {
 public:
  PreparedReduce(const Problem& problem, const RoutineInfo& info)
      : kernels_(reduce_kernels(info.isa)),
        threads_(problem.threads),
        params_(reduce_params(*problem.layer, problem.in[0].shape)),
        images_(problem.in[0].shape[0]) {
    ImageAxes axes(problem.in[0].shape, info.in.layout, params_);
    image_ = 1;
    for (int64_t dim : axes.size) image_ *= dim;
    int64_t inner = 1;
    for (size_t i = axes.size.size(); i-- > 0;) {
      if (!axes.reduced[i]) {
        inner *= axes.size[i];
        continue;
      }
      int64_t outer = 1;
      for (size_t k = 0; k < i; ++k) outer *= axes.size[k];
      steps_.push_back({outer, axes.size[i], inner});
      image_ = outer * inner;
    }
    over_images_ = params_.reduced[0];
  }

  // One buffer for the results of each step.
  WorkspaceSize workspace() const override {
    int64_t elements = over_images_ ? image_ : 0;
    for (const Step& step : steps_) elements += images_ * step.outer * step.inner;
    return {.shared = static_cast<size_t>(elements) * sizeof(float)};
  }

  void run(const RunArgs& args) const override {
    const int64_t out_images = args.out.shape.rank() == 0 ? 1 : args.out.shape[0];
    const int64_t out_image = args.out.image_elements();
    Buffer from{args.in[0].f32(), args.in[0].strides[0]};
    auto* memory = reinterpret_cast<float*>(args.workspace.shared());
    for (size_t i = 0; i < steps_.size(); ++i) {
      const Step& step = steps_[i];
      const ReduceOp op = i == 0 ? params_.op : op_of_results();
      const bool to_out = i + 1 == steps_.size() && !over_images_ && out_image == image_;
      const Buffer to{to_out ? args.out.f32() : memory, to_out ? args.out.strides[0] : step.outer * step.inner};
      run_step(step, op, from, to, args.parallel_for);
      memory += to_out ? 0 : images_ * to.stride;
      from = to;
    }
    if (over_images_) {
      run_over_images(steps_.empty() ? params_.op : op_of_results(), from, memory, args.parallel_for);
      from = {memory, out_image};
    }
    finish(from, args.out, out_images, out_image);
  }

 private:
  struct Buffer {
    float* data;
    int64_t stride;  // from image to image
  };

  // Sums of squares or magnitudes only have to be summed up from here on.
  ReduceOp op_of_results() const {
    const bool extreme = params_.op == ReduceOp::max || params_.op == ReduceOp::min;
    return extreme ? params_.op : ReduceOp::sum;
  }

  void run_step(const Step& step, ReduceOp op_now, Buffer from, Buffer to, const ParallelFor& parallel_for) const {
    Grid grid;
    grid.outer_rank = 1;
    grid.outer[0] = images_;
    grid.rows = step.outer, grid.count = step.inner, grid.work = step.size;
    const auto op = static_cast<size_t>(op_now);
    for_each_cell(grid, threads_, parallel_for, [&](const Cell& cell) {
      const float* src = from.data + cell.outer * from.stride + cell.row * step.size * step.inner + cell.column;
      float* dst = to.data + cell.outer * to.stride + cell.row * step.inner + cell.column;
      if (step.inner == 1) return kernels_.rows[op](dst, src, cell.rows, step.size, step.size);
      for (int64_t r = 0; r < cell.rows; ++r) {
        kernels_.columns[op](dst + r * step.inner, src + r * step.size * step.inner, step.size, step.inner, cell.count);
      }
    });
  }

  void run_over_images(ReduceOp op, Buffer from, float* dst, const ParallelFor& parallel_for) const {
    Grid grid;
    grid.count = image_, grid.work = images_;
    for_each_cell(grid, threads_, parallel_for, [&](const Cell& cell) {
      kernels_.columns[static_cast<size_t>(op)](dst + cell.column, from.data + cell.column, images_, from.stride,
                                                cell.count);
    });
  }

  // Results to where they belong, and divided for a mean, or their roots.
  void finish(Buffer from, const TensorView& out, int64_t images, int64_t image) const {
    const bool placed = from.data == out.f32();
    if (placed && !params_.mean && !params_.root) return;
    const auto divisor = static_cast<float>(params_.mean ? params_.count : 1);
    for (int64_t n = 0; n < images; ++n) {
      const float* src = from.data + n * from.stride;
      float* dst = out.f32() + n * out.strides[0];
      for (int64_t i = 0; i < image; ++i) dst[i] = params_.root ? std::sqrt(src[i]) : src[i] / divisor;
    }
  }

  const ReduceKernels& kernels_;
  int threads_;
  ReduceParams params_;
  int64_t images_, image_;  // image_: results of an image
  std::vector<Step> steps_;
  bool over_images_ = false;
};

class ReduceVector final : public Routine {
 public:
  ReduceVector(Isa isa, const Schema& in, const Schema& out)
      : Routine({.layer_type = "reduce", .algorithm = "vector", .isa = isa, .in = in, .out = out}) {}

  Refusal check(const Problem& problem) const override {
    if (!problem.layer->post.empty()) return "takes no post-ops";
    const Layout &in = info().in.layout, &out = info().out.layout;
    if (in.kind == Layout::Kind::nchw) return {};
    const Shape& shape = problem.in[0].shape;
    const ReduceParams p = reduce_params(*problem.layer, shape);
    if (in.is_blocked() && p.reduced[1]) return "channels are blocked";
    if (in.is_blocked() && p.count == 0) return "padding lanes would not stay zero";
    if (p.reduced[0] && in.is_blocked() && in != out) return "axis 0 and blocked channels";
    if (in == out) return p.keepdim ? Refusal() : Refusal("keeps the axes");
    for (int axis = 2; axis < shape.rank(); ++axis) {
      if (!p.reduced[static_cast<size_t>(axis)] && shape[axis] != 1) return "a row-major result wants one pixel";
    }
    return {};
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed>) const override {
    return std::make_unique<PreparedReduce>(problem, info());
  }
};

}  // namespace

void reduce_vector(RoutineList& list) {
  for (Isa isa : all_isas())
    for (const Schema& schema : vector_schemas(isa)) {
      list.add<ReduceVector>(isa, schema, schema);
      if (schema != f32_nchw) list.add<ReduceVector>(isa, schema, f32_nchw);
    }
}

}  // namespace softneuro
