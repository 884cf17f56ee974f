// Rows x prepacked weights. A single row streams the weights once (gemv), dealt to threads by output columns.
#include "layers/linear/rows.h"
#include "layers/products/gemm_tasks.h"

namespace softneuro {
namespace {

SN_PARAMS(LinearGemmParams, panel, split);

class PreparedLinear final : public PreparedSplit {
 public:
  PreparedLinear(const Problem& problem, const GemmKernels& kernels, const LinearGemmParams& params,
                 std::shared_ptr<const Packed> packed)
      : PreparedSplit(problem, std::move(packed)), kernels_(kernels) {
    const LinearParams p = linear_params(problem);
    gemm_.n = static_cast<int>(p.k);
    gemm_.k = static_cast<int>(p.c);
    gemm_.tiling = gemm_tiling(kernels, params.panel);
    gemm_.b = packed_->at<float>("weights");
    gemm_.epilogue = {.bias = packed_->find<float>("bias"), .activation = problem.layer->post.activation};
    if (p.rows * p.k == 0) return;
    split_ = split_linear(p, gemm_panels(gemm_.n, kernels.lanes, gemm_.tiling.panel), problem.threads,
                          parse_split(params.split));
    scratch_ = round_to_line(kernels.scratch_bytes(static_cast<int>(p.rows), gemm_.k, gemm_.tiling));
  }

  void run(const RunArgs& args) const override {
    for_pieces(args, [&](int64_t, Range panels, Range rows, std::byte* scratch) {
      for_even_rows(args, residual_, rows, [&](const EvenRows& even) {
        GemmArgs call = gemm_;
        call.m = even.count;
        call.a = even.src;
        call.a_stride = even.src_stride;
        call.dst = even.dst;
        call.dst_stride = even.dst_stride;
        call.epilogue.residual = even.residual;
        kernels_.run(call, static_cast<int>(panels.begin), static_cast<int>(panels.end), 0, call.m, scratch);
      });
    });
  }

 private:
  const GemmKernels& kernels_;
  GemmArgs gemm_;
};

class GemmLinear final : public Routine {
 public:
  explicit GemmLinear(Isa isa)
      : Routine({.layer_type = "linear", .algorithm = "gemm", .isa = isa, .in = f32_nchw, .out = f32_nchw}) {}

  Refusal check(const Problem& problem) const override {
    const LinearParams p = linear_params(problem);
    return check_gemm_sizes(p.rows, p.k, p.c);
  }

  std::vector<std::string> param_names() const override { return LinearGemmParams::names(); }
  std::vector<Tuning> tunings(const Problem& problem) const override {
    const LinearParams p = linear_params(problem);
    const int split = likely_linear_split(p);
    std::vector<Tuning> list{LinearGemmParams{2, split}, LinearGemmParams{3, split}};
    if (p.rows < 4) list.push_back(LinearGemmParams{1, split});
    if (problem.threads > 1 && p.rows > 1) list.push_back(LinearGemmParams{2, 1 - split});
    return list;
  }

  std::string pack_key(const Problem&, const Tuning& tuning) const override {
    return "panel " + std::to_string(LinearGemmParams::of(tuning).panel);
  }
  Packing packing(const Problem& problem, const Tuning&) const override {
    const LinearParams p = linear_params(problem);
    Packing packing;
    packing.add("weights", gemm_packed_size(narrow(p.k), narrow(p.c), gemm_kernels(info().isa)->lanes), DType::float32,
                p.k * p.c);
    add_bias(packing, *problem.layer, p.k);
    return packing;
  }
  void pack(const Problem& problem, const Tuning& tuning, Packed& to) const override {
    const LinearParams p = linear_params(problem);
    const GemmKernels& kernels = *gemm_kernels(info().isa);
    const int panel = gemm_tiling(kernels, LinearGemmParams::of(tuning).panel).panel;
    const auto weight = problem.layer->weight("weight")->values();
    kernels.pack_b(narrow(p.k), narrow(p.c), panel, weight.get(), p.c, true, 0,
                   gemm_panels(narrow(p.k), kernels.lanes, panel), to.at<float>("weights"));
    pack_bias(*problem.layer, to);
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const override {
    return std::make_unique<PreparedLinear>(problem, *gemm_kernels(info().isa), LinearGemmParams::of(tuning),
                                            std::move(packed));
  }
};

}  // namespace

void linear_gemm(RoutineList& list) {
  for (Isa isa : all_isas()) list.add<GemmLinear>(isa);
}

}  // namespace softneuro
