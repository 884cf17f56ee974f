// One matrix product after the other on the gemm kernels.
#include "layers/batched_linear/batched_linear.h"
#include "layers/products/gemm_tasks.h"
#include "layers/shared/split.h"

namespace softneuro {
namespace {

SN_PARAMS(BatchedGemmParams, panel);

class PreparedBatchedGemm final : public PreparedSplit {
 public:
  PreparedBatchedGemm(const Problem& problem, const GemmKernels& kernels, int panel,
                      std::shared_ptr<const Packed> packed)
      : PreparedSplit(problem, std::move(packed)), weights_(packed_->at<float>("weights")), run_(kernels.run) {
    const BatchedLinearParams p = batched_linear_params(*problem.layer, problem.in[0]);
    gemm_.m = static_cast<int>(p.rows);
    gemm_.n = static_cast<int>(p.k);
    gemm_.k = static_cast<int>(p.c);
    gemm_.tiling = gemm_tiling(kernels, panel);
    gemm_.a_stride = p.c;
    gemm_.dst_stride = p.k;
    matrix_ = static_cast<int64_t>(gemm_packed_size(gemm_.n, gemm_.k, kernels.lanes));
    if (p.empty()) return;
    split_ = WorkSplit(p.batch, gemm_panels(gemm_.n, kernels.lanes, panel), p.rows, problem.threads, SplitBy::panels);
    scratch_ = round_to_line(kernels.scratch_bytes(gemm_.m, gemm_.k, gemm_.tiling));
  }

  void run(const RunArgs& args) const override {
    for_pieces(args, [&](int64_t index, Range panels, Range rows, std::byte* scratch) {
      GemmArgs call = gemm_;
      call.a = args.in[0].f32() + index * args.in[0].strides[0];
      call.b = weights_ + index * matrix_;
      call.dst = args.out.f32() + index * args.out.strides[0];
      run_(call, static_cast<int>(panels.begin), static_cast<int>(panels.end), static_cast<int>(rows.begin),
           static_cast<int>(rows.end), scratch);
    });
  }

 private:
  const float* weights_;
  decltype(GemmKernels::run) run_;
  GemmArgs gemm_;
  int64_t matrix_ = 0;  // floats of a packed matrix
};

class GemmBatchedLinear final : public Routine {
 public:
  explicit GemmBatchedLinear(Isa isa)
      : Routine({.layer_type = "batched_linear", .algorithm = "gemm", .isa = isa, .in = f32_nchw, .out = f32_nchw}) {}

  Refusal check(const Problem& problem) const override {
    if (!problem.layer->post.empty()) return "has post-ops";
    const BatchedLinearParams p = batched_linear_params(*problem.layer, problem.in[0]);
    return check_gemm_sizes(p.rows, p.k, p.c);
  }

  std::vector<std::string> param_names() const override { return BatchedGemmParams::names(); }
  std::vector<Tuning> tunings(const Problem&) const override { return {BatchedGemmParams{2}, BatchedGemmParams{3}}; }

  Packing packing(const Problem& problem, const Tuning&) const override {
    const BatchedLinearParams p = batched_linear_params(*problem.layer, problem.in[0]);
    return Packing().add("weights", p.batch * matrix_size(p), DType::float32, p.batch * p.k * p.c);
  }
  void pack(const Problem& problem, const Tuning& tuning, Packed& to) const override {
    const BatchedLinearParams p = batched_linear_params(*problem.layer, problem.in[0]);
    const GemmKernels& kernels = *gemm_kernels(info().isa);
    const int n = static_cast<int>(p.k), k = static_cast<int>(p.c);
    const int panel = gemm_tiling(kernels, BatchedGemmParams::of(tuning).panel).panel;
    const auto weight = problem.layer->weight("weight")->values();
    for (int64_t b = 0; b < p.batch; ++b) {
      kernels.pack_b(n, k, panel, weight.get() + b * n * k, k, true, 0, gemm_panels(n, kernels.lanes, panel),
                     to.at<float>("weights") + b * matrix_size(p));
    }
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const override {
    return std::make_unique<PreparedBatchedGemm>(problem, *gemm_kernels(info().isa),
                                                 BatchedGemmParams::of(tuning).panel, std::move(packed));
  }

 private:
  int64_t matrix_size(const BatchedLinearParams& p) const {
    return static_cast<int64_t>(
        gemm_packed_size(static_cast<int>(p.k), static_cast<int>(p.c), gemm_kernels(info().isa)->lanes));
  }
};

}  // namespace

void batched_linear_gemm(RoutineList& list) {
  for (Isa isa : all_isas()) list.add<GemmBatchedLinear>(isa);
}

}  // namespace softneuro
