// softmax of plain layouts: along rows where the axis is the innermost in memory, else down columns.
#include "kernels/softmax/softmax.h"
#include "layers/contract/routine.h"
#include "layers/shared/grid.h"
#include "layers/softmax/softmax.h"

namespace softneuro {
namespace {

class PreparedSoftmax final : public Prepared {
 public:
  PreparedSoftmax(const Problem& problem, const RoutineInfo& info)
      : kernels_(softmax_kernels(info.isa)), threads_(problem.threads) {
    const Shape& shape = problem.out().shape;
    const SoftmaxParams params = softmax_params(*problem.layer, shape);
    const bool nhwc = info.in.layout.kind == Layout::Kind::nhwc;
    const int rank = shape.rank(), axis = params.axis;
    log_ = params.log, safe_ = params.safe;
    over_images_ = axis == 0;
    size_ = shape[axis];
    if (axis == 0) {
      inner_ = shape.product(1, rank);
    } else if (nhwc && axis == 1) {
      outer_ = shape.product(2, rank);
    } else {
      outer_ = shape.product(nhwc ? 2 : 1, axis);
      inner_ = shape.product(axis + 1, rank) * (nhwc ? shape[1] : 1);
    }
  }

  void run(const RunArgs& args) const override {
    const TensorView &in = args.in[0], &out = args.out;
    const int64_t dst_stride = over_images_ ? out.strides[0] : inner_;
    const int64_t src_stride = over_images_ ? in.strides[0] : inner_;
    const bool rows = dst_stride == 1 && src_stride == 1;
    Grid grid;
    grid.outer_rank = 1;
    grid.outer[0] = over_images_ ? 1 : out.shape[0];
    grid.rows = outer_, grid.count = inner_, grid.work = size_;
    for_each_cell(grid, threads_, args.parallel_for, [&](const Cell& cell) {
      const int64_t start = cell.row * size_ * inner_ + cell.column;
      float* dst = out.f32() + cell.outer * out.strides[0] + start;
      const float* src = in.f32() + cell.outer * in.strides[0] + start;
      if (rows)
        return kernels_.rows[log_]({.dst = dst, .src = src, .count = size_, .number = cell.rows, .safe = safe_});
      for (int64_t r = 0; r < cell.rows; ++r) {
        kernels_.columns[log_]({dst, src, size_, cell.count, dst_stride, src_stride, safe_});
        dst += size_ * inner_, src += size_ * inner_;
      }
    });
  }

 private:
  const SoftmaxKernels& kernels_;
  int threads_;
  bool log_ = false, safe_ = false, over_images_ = false;
  int64_t outer_ = 1, size_ = 1, inner_ = 1;  // of an image, in memory order; of all if over images
};

class SoftmaxVector final : public Routine {
 public:
  SoftmaxVector(Isa isa, const Schema& schema)
      : Routine({.layer_type = "softmax",
                 .algorithm = "vector",
                 .isa = isa,
                 .in = schema,
                 .out = schema,
                 .inplace_input = 0}) {}

  Refusal check(const Problem& problem) const override {
    return problem.layer->post.empty() ? Refusal() : Refusal("takes no post-ops");
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed>) const override {
    return std::make_unique<PreparedSoftmax>(problem, info());
  }
};

}  // namespace

void softmax_vector(RoutineList& list) {
  for (Isa isa : all_isas())
    for (const Schema& schema : {f32_nchw, f32_nhwc}) list.add<SoftmaxVector>(isa, schema);
}

}  // namespace softneuro
