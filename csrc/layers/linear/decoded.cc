#include "layers/linear/decoded.h"

#include <algorithm>
#include <vector>

#include "kernels/decode_rows/decode_rows.h"
#include "kernels/dot_rows/dot_rows.h"
#include "kernels/integers.h"
#include "layers/contract/params.h"
#include "layers/quantized/quantization.h"

namespace softneuro {

namespace {

// Outputs of a part, which meet the rows after these have been packed for them. A part of 1024 inputs is 1 MB.
constexpr int strip = 256, part_inputs = 1024;

}  // namespace

DecodedGemm::DecodedGemm(const Problem& problem, const LinearParams& p, const GemmKernels& kernels, int panel, int unit)
    : PreparedSplit(problem), kernels_(kernels), outputs_(narrow(p.k)), depth_(std::max(part_inputs, unit)) {
  args_.k = narrow(p.c);
  args_.tiling = gemm_tiling(kernels, panel);
  args_.epilogue.activation = problem.layer->post.activation;
  if (p.rows * p.k == 0) return;
  split_ = split_linear(p, gemm_panels(outputs_, kernels.lanes, panel), problem.threads, SplitBy::panels);
  const int inputs = std::min(depth_, args_.k), width = round_up(strip, panel * kernels.lanes);
  decoded_ = round_to_line(static_cast<size_t>(width) * static_cast<size_t>(inputs) * sizeof(float));
  scratch_ = decoded_ + round_to_line(kernels.scratch_bytes(static_cast<int>(p.rows), inputs, args_.tiling));
}

void DecodedGemm::run(const RunArgs& args) const {
  const int64_t count = ceil_div(strip, args_.tiling.panel * kernels_.lanes);
  for_pieces(args, [&](int64_t, Range panels, Range rows, std::byte* scratch) {
    for (int64_t panel = panels.begin; panel < panels.end; panel += count) {
      run_strip(args, {panel, std::min(panel + count, panels.end)}, rows, scratch);
    }
  });
}

void DecodedGemm::run_strip(const RunArgs& args, Range panels, Range rows, std::byte* scratch) const {
  const int64_t width = args_.tiling.panel * kernels_.lanes, first = panels.begin * width;
  const int64_t end = std::min<int64_t>(panels.end * width, outputs_);
  auto* const decoded = reinterpret_cast<float*>(scratch);
  for (int l = 0; l == 0 || l < args_.k; l += depth_) {
    const int k_end = std::min(l + depth_, args_.k);
    for (int64_t at = first; at < end; at += width) {
      decode({at, std::min(at + width, end)}, {l, k_end}, decoded + (at - first) * (k_end - l));
    }
    // Sums wait in the output until the last part.
    const bool last = k_end == args_.k;
    for_even_rows(args, residual_, rows, [&](const EvenRows& even) {
      GemmArgs call = args_;
      call.n = narrow(end - first);
      call.k = k_end - l;
      call.b = decoded;
      call.m = even.count;
      call.a = even.src + l;
      call.a_stride = even.src_stride;
      call.dst = even.dst + first;
      call.dst_stride = even.dst_stride;
      call.accumulate = l > 0;
      if (last) {
        call.epilogue.residual = even.residual;
        call.epilogue = call.epilogue.from(narrow(first), static_cast<size_t>(first));
      } else {
        call.epilogue = {};
      }
      kernels_.run(call, 0, narrow(panels.end - panels.begin), 0, call.m, scratch + decoded_);
    });
  }
}

namespace {

SN_PARAMS(DecodedParams, panel);

class PreparedDecodedBytes final : public DecodedGemm {
 public:
  PreparedDecodedBytes(const Problem& problem, const LinearParams& p, Isa isa, int panel)
      : DecodedGemm(problem, p, *gemm_kernels(isa), panel, 1),
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
  void decode(Range outputs, Range inputs, float* to) const override {
    const auto* const rows = static_cast<const int8_t*>(memory_.get()) + outputs.begin * inputs_ + inputs.begin;
    decode_(narrow(outputs.end - outputs.begin), narrow(inputs.end - inputs.begin), rows, inputs_,
            scales_.data() + outputs.begin, to);
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
    const LinearParams p = linear_params(problem);
    if (const Refusal refusal = check_signed_weight(*problem.layer->weight("weight")); !refusal.accepted()) {
      return refusal;
    }
    return check_gemm_sizes(p.rows, p.k, p.c);
  }
  // With few rows a panel's floats are not worth their making.
  bool promising(const Problem& problem) const override { return linear_params(problem).rows > DotRows::most_of_bytes; }
  std::vector<std::string> param_names() const override { return DecodedParams::names(); }
  std::vector<Tuning> tunings(const Problem&) const override { return {DecodedParams{2}, DecodedParams{3}}; }
  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed>) const override {
    return std::make_unique<PreparedDecodedBytes>(problem, linear_params(problem), info().isa,
                                                  DecodedParams::of(tuning).panel);
  }
};

}  // namespace

void linear_decoded_int8(RoutineList& list) {
  for (Isa isa : all_isas()) list.add<DecodedBytes>(isa);
}

}  // namespace softneuro
