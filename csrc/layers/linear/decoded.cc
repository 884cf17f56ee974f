#include "layers/linear/decoded.h"

#include <algorithm>
#include <vector>

#include "kernels/decode_rows/decode_rows.h"
#include "kernels/dot_rows/dot_rows.h"
#include "layers/params.h"
#include "layers/quantization.h"

namespace softneuro {

DecodedGemm::DecodedGemm(const Problem& problem, const LinearParams& p, const GemmKernels& kernels, int panel)
    : kernels_(kernels), residual_(problem.layer->post.residual), outputs_(narrow(p.k)) {
  args_.k = narrow(p.c);
  args_.tiling = gemm_tiling(kernels, panel);
  args_.epilogue.activation = problem.layer->post.activation;
  if (p.rows * p.k == 0) return;
  split_ = split_linear(p, gemm_panels(outputs_, kernels.lanes, panel), problem.threads, SplitBy::panels);
  decoded_ = round_to_line(static_cast<size_t>(panel * kernels.lanes) * static_cast<size_t>(p.c) * sizeof(float));
  scratch_ = decoded_ + round_to_line(kernels.scratch_bytes(static_cast<int>(p.rows), args_.k, args_.tiling));
}

void DecodedGemm::run(const RunArgs& args) const {
  const int width = args_.tiling.panel * kernels_.lanes;
  const auto run_panel = [&](int first, Range rows, std::byte* scratch) {
    const int end = std::min(first + width, outputs_);
    auto* const decoded = reinterpret_cast<float*>(scratch);
    decode(first, end, decoded);
    for_even_rows(args, residual_, rows, [&](const EvenRows& even) {
      GemmArgs call = args_;
      call.n = end - first;
      call.b = decoded;
      call.m = even.count;
      call.a = even.src;
      call.a_stride = even.src_stride;
      call.dst = even.dst + first;
      call.dst_stride = even.dst_stride;
      call.epilogue.residual = even.residual;
      call.epilogue = call.epilogue.from(first, static_cast<size_t>(first));
      kernels_.run(call, 0, 1, 0, call.m, scratch + decoded_);
    });
  };
  args.parallel_for(split_.tasks, [&](int64_t task) {
    split_.for_task(task, [&](int64_t, Range panels, Range rows) {
      for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
        run_panel(static_cast<int>(panel) * width, rows, args.workspace.task(task));
      }
    });
  });
}

namespace {

SN_PARAMS(DecodedParams, panel);

class PreparedDecodedBytes final : public DecodedGemm {
 public:
  PreparedDecodedBytes(const Problem& problem, const LinearParams& p, Isa isa, int panel)
      : DecodedGemm(problem, p, *gemm_kernels(isa), panel),
        decode_(decode_rows_kernel(isa)),
        inputs_(p.c),
        memory_(problem.layer->weight("weight")->memory()),
        scales_(output_scales(*problem.layer->weight("weight"))) {
    if (const Constant* bias = problem.layer->find_weight("bias")) {
      const auto values = (*bias)->values();
      bias_.assign(values.get(), values.get() + p.k);
      set_bias(bias_.data());
    }
  }

 private:
  void decode(int first, int end, float* to) const override {
    const auto* const rows = static_cast<const int8_t*>(memory_.get()) + first * inputs_;
    decode_(end - first, narrow(inputs_), rows, scales_.data() + first, to);
  }

  DecodeRowsKernel decode_;
  int64_t inputs_;
  ConstantData::Memory memory_;
  std::vector<float> scales_, bias_;
};

class DecodedBytes final : public Routine {
 public:
  explicit DecodedBytes(Isa isa)
      : Routine({.layer_type = "linear", .algorithm = "decoded_int8", .isa = isa, .in = f32_nchw, .out = f32_nchw}) {}

  Refusal check(const Problem& problem) const override {
    const LinearParams p = linear_params(*problem.layer, problem.in[0]);
    if (const Refusal refusal = check_signed_weight(*problem.layer->weight("weight")); !refusal.accepted()) {
      return refusal;
    }
    return check_gemm_sizes(p.rows, p.k, p.c);
  }
  // With few rows a panel's floats are not worth their making.
  bool promising(const Problem& problem) const override {
    return linear_params(*problem.layer, problem.in[0]).rows > DotRows::most_of_bytes;
  }
  std::vector<std::string> param_names() const override { return DecodedParams::names(); }
  std::vector<Tuning> tunings(const Problem&) const override { return {DecodedParams{2}, DecodedParams{3}}; }
  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed>) const override {
    return std::make_unique<PreparedDecodedBytes>(problem, linear_params(*problem.layer, problem.in[0]), info().isa,
                                                  DecodedParams::of(tuning).panel);
  }
};

}  // namespace

void linear_decoded_int8(RoutineList& list) {
  for (Isa isa : all_isas()) list.add<DecodedBytes>(isa);
}

}  // namespace softneuro
