// layer_norm of row-major blobs: each row's statistics, then the row.
#include <cmath>

#include "kernels/normalize/normalize.h"
#include "layers/contract/routine.h"
#include "layers/layer_norm/layer_norm.h"
#include "layers/shared/grid.h"
#include "layers/weights/affine.h"

namespace softneuro {
namespace {

class PreparedLayerNorm final : public Prepared {
 public:
  PreparedLayerNorm(const Problem& problem, Isa isa, std::shared_ptr<const Packed> packed)
      : kernels_(normalize_kernels(isa)),
        threads_(problem.threads),
        packed_(std::move(packed)),
        weight_(find_packed<float>(packed_, "weight")),
        bias_(find_packed<float>(packed_, "bias")) {
    const Shape& shape = problem.out().shape;
    const LayerNormParams params = layer_norm_params(*problem.layer, shape);
    const int first = shape.rank() - params.normalized.rank();
    eps_ = static_cast<float>(params.eps);
    size_ = params.normalized.elements();
    images_ = first == 0 ? 1 : shape[0];
    rows_ = first == 0 ? 1 : shape.product(1, first);
  }

  void run(const RunArgs& args) const override {
    Grid grid;
    grid.outer_rank = 1;
    grid.outer[0] = images_, grid.rows = rows_, grid.work = size_;
    for_each_cell(grid, threads_, args.parallel_for, [&](const Cell& cell) {
      for (int64_t row = cell.row; row < cell.row + cell.rows; ++row) {
        const float* src = args.in[0].f32() + cell.outer * args.in[0].strides[0] + row * size_;
        float* dst = args.out.f32() + cell.outer * args.out.strides[0] + row * size_;
        const Moments m = kernels_.moments(src, size_);
        const float factor = 1 / std::sqrt(m.variance + eps_);
        kernels_.normalize({dst, src, weight_, bias_, size_, m.center, factor, -m.offset * factor});
      }
    });
  }

 private:
  const NormalizeKernels& kernels_;
  int threads_;
  std::shared_ptr<const Packed> packed_;
  const float *weight_, *bias_;  // null: none
  float eps_ = 0;
  int64_t images_ = 1, rows_ = 1, size_ = 1;
};

class LayerNormRows final : public Routine {
 public:
  explicit LayerNormRows(Isa isa)
      : Routine({.layer_type = "layer_norm",
                 .algorithm = "rows",
                 .isa = isa,
                 .in = f32_nchw,
                 .out = f32_nchw,
                 .inplace_input = 0}) {}

  Refusal check(const Problem& problem) const override {
    if (!problem.layer->post.empty()) return "takes no post-ops";
    const Shape& shape = problem.out().shape;
    if (problem.layer->attrs.integer("axes") == shape.rank() && shape.rank() > 1 && shape[0] > 1) {
      return "statistics over axis 0, along which a blob may have gaps";
    }
    return {};
  }

  Packing packing(const Problem& problem, const Tuning&) const override {
    const Shape normalized = layer_norm_params(*problem.layer, problem.out().shape).normalized;
    return affine_packing(*problem.layer, normalized.elements());
  }
  void pack(const Problem& problem, const Tuning&, Packed& to) const override { pack_affine(*problem.layer, to); }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning&,
                                          std::shared_ptr<const Packed> packed) const override {
    return std::make_unique<PreparedLayerNorm>(problem, info().isa, std::move(packed));
  }
};

}  // namespace

void layer_norm_rows(RoutineList& list) {
  for (Isa isa : all_isas()) list.add<LayerNormRows>(isa);
}

}  // namespace softneuro
