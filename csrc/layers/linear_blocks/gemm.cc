// Any number of rows.
#include "kernels/integers.h"
#include "layers/linear/decoded.h"
#include "layers/linear_blocks/packing.h"

namespace softneuro {
namespace {

SN_PARAMS(GemmBlocksParams, bits, panel);

class PreparedGemmBlocks final : public DecodedGemm {
 public:
  PreparedGemmBlocks(const Problem& problem, const LinearBlocksParams& p, const DotBlocksKernels& kernels,
                     const GemmKernels& gemm, int panel, std::shared_ptr<const Packed> packed)
      : DecodedGemm(problem, p, gemm, panel, p.block),
        packed_(std::move(packed)),
        kernels_(kernels),
        weights_(dot_blocks_args(problem, *packed_)) {
    set_bias(weights_.epilogue.bias);
  }

 private:
  void decode(Range outputs, Range inputs, float* to) const override {
    kernels_.decode(weights_, narrow(outputs.begin / kernels_.lanes), narrow(ceil_div(outputs.end, kernels_.lanes)),
                    narrow(inputs.begin), narrow(inputs.end), to);
  }

  std::shared_ptr<const Packed> packed_;
  const DotBlocksKernels& kernels_;
  DotBlocks weights_;
};

class GemmBlocksRoutine final : public BlocksRoutine {
 public:
  explicit GemmBlocksRoutine(Isa isa) : BlocksRoutine("gemm", isa) {}

  Refusal check(const Problem& problem) const override {
    const LinearBlocksParams p = params(problem);
    return check_gemm_sizes(p.rows, p.k, p.c);
  }
  std::vector<std::string> param_names() const override { return GemmBlocksParams::names(); }
  std::vector<Tuning> tunings(const Problem& problem) const override {
    const int bits = params(problem).bits;
    return {GemmBlocksParams{bits, 2}, GemmBlocksParams{bits, 3}};
  }
  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const override {
    return std::make_unique<PreparedGemmBlocks>(problem, params(problem), kernels(), *gemm_kernels(info().isa),
                                                GemmBlocksParams::of(tuning).panel, std::move(packed));
  }
};

}  // namespace

void linear_blocks_gemm(RoutineList& list) {
  for (Isa isa : all_isas()) list.add<GemmBlocksRoutine>(isa);
}

}  // namespace softneuro
