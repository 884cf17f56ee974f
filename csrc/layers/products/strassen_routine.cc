#include "layers/products/strassen_routine.h"

#include "layers/products/gemm_tasks.h"
#include "layers/products/strassen.h"
#include "layers/products/strassen_cost.h"

namespace softneuro {
namespace {

StrassenShape shape_of(const MatrixView& view, int depth) {
  return {view.m, view.n, view.k, parse_within("depth", depth, 1, deepest_strassen)};
}

class PreparedStrassen final : public Prepared {
 public:
  PreparedStrassen(const Problem& problem, const MatrixView& view, const StrassenGemm& gemm,
                   std::shared_ptr<const Packed> packed)
      : packed_(std::move(packed)),
        view_(view),
        gemm_(gemm),
        bias_(packed_->find<float>("bias")),
        residual_(problem.layer->post.residual) {}

  WorkspaceSize workspace() const override { return {.task = gemm_.scratch_bytes(), .tasks = gemm_.tasks()}; }

  void run(const RunArgs& args) const override {
    const TensorView& residual = args.in[residual_ ? 1 : 0];
    const auto stride = [&](const TensorView& blob, int64_t dense) {
      return view_.rows_are_images ? blob.strides[0] : dense;
    };
    args.parallel_for(gemm_.tasks(), [&](int64_t task) {
      for (int64_t image = 0; image < view_.images; ++image) {
        StrassenArgs call;
        call.a = args.in[0].f32() + image * args.in[0].strides[0];
        call.a_stride = stride(args.in[0], view_.k);
        call.dst = args.out.f32() + image * args.out.strides[0];
        call.dst_stride = stride(args.out, view_.n);
        call.bias = bias_;
        if (residual_) {
          call.residual = residual.f32() + image * residual.strides[0];
          call.residual_stride = stride(residual, view_.n);
        }
        gemm_.run(call, task, args.workspace.task(task));
      }
    });
  }

 private:
  std::shared_ptr<const Packed> packed_;
  MatrixView view_;
  StrassenGemm gemm_;
  const float* bias_;
  bool residual_;
};

}  // namespace

StrassenRoutine::StrassenRoutine(std::string layer_type, Isa isa, Schema schema)
    : Routine({.layer_type = std::move(layer_type),
               .algorithm = "strassen",
               .isa = isa,
               .in = schema,
               .out = schema,
               .error = ErrorClass::strassen,
               .spreads_nonfinite = true}) {}

Refusal StrassenRoutine::check(const Problem& problem) const {
  const Refusal product = is_product(problem);
  if (!product.accepted()) return product;
  const MatrixView view = matrices(problem);
  const Refusal sizes = check_gemm_sizes(view.m, view.n, view.k);
  if (!sizes.accepted()) return sizes;
  if (!strassen_saves(view.m, view.n, view.k)) return "too small: more additions than multiplications saved";
  const StrassenGemm gemm(info().isa, shape_of(view, strassen_depth(view.m, view.n, view.k)), 1, nullptr, {},
                          problem.threads);
  if (gemm.scratch_bytes() * static_cast<size_t>(gemm.tasks()) > most_scratch) return "scratch beyond 256 MiB";
  return {};
}

// The packed weights have 7/4 of the layer's bytes, which are most of the traffic where rows are few.
bool StrassenRoutine::promising(const Problem& problem) const {
  constexpr int64_t least_rows = 32;
  const MatrixView view = matrices(problem);
  return view.images * view.m >= least_rows;
}

std::vector<Tuning> StrassenRoutine::tunings(const Problem& problem) const {
  const MatrixView view = matrices(problem);
  const int depth = strassen_depth(view.m, view.n, view.k);
  if (depth == 1) return {StrassenParams{depth, 2}};
  return {StrassenParams{depth, 2}, StrassenParams{depth, 3}, StrassenParams{depth - 1, 2}};
}

Packing StrassenRoutine::packing(const Problem& problem, const Tuning& tuning) const {
  const StrassenShape shape = shape_of(matrices(problem), StrassenParams::of(tuning).depth);
  Packing packing;
  packing.add("weights", strassen_packed_size(*gemm_kernels(info().isa), shape));
  add_bias(packing, *problem.layer, shape.n);
  return packing;
}

void StrassenRoutine::pack(const Problem& problem, const Tuning& tuning, Packed& to) const {
  const auto params = StrassenParams::of(tuning);
  const GemmKernels& kernels = *gemm_kernels(info().isa);
  strassen_pack(kernels, shape_of(matrices(problem), params.depth), gemm_tiling(kernels, params.panel).panel,
                problem.layer->weight("weight")->values().get(), to.at<float>("weights"));
  pack_bias(*problem.layer, to);
}

std::unique_ptr<const Prepared> StrassenRoutine::prepare(const Problem& problem, const Tuning& tuning,
                                                         std::shared_ptr<const Packed> packed) const {
  const auto params = StrassenParams::of(tuning);
  const MatrixView view = matrices(problem);
  const StrassenGemm gemm(info().isa, shape_of(view, params.depth), params.panel, packed->at<float>("weights"),
                          problem.layer->post.activation, problem.threads);
  return std::make_unique<PreparedStrassen>(problem, view, gemm, std::move(packed));
}

double StrassenRoutine::expected_error(const Problem& problem, const Tuning& tuning) const {
  return strassen_error(shape_of(matrices(problem), StrassenParams::of(tuning).depth));
}

}  // namespace softneuro
