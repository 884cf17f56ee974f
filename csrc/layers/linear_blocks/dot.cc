// A few rows x integers that become floats in registers: where weights come from memory, their bytes are the time.
#include "kernels/dot_blocks/layout.h"
#include "layers/contract/params.h"
#include "layers/linear/rows.h"
#include "layers/linear_blocks/packing.h"
#include "layers/shared/kernel_sizes.h"

namespace softneuro {
namespace {

SN_PARAMS(DotBlocksParams, bits, fetch);

class DotBlocksRoutine final : public BlocksRoutine {
 public:
  explicit DotBlocksRoutine(Isa isa) : BlocksRoutine("dot", isa) {}

  Refusal check(const Problem& problem) const override {
    const LinearBlocksParams p = params(problem);
    if (p.rows > DotBlocks::most_vectors) return "more than " + std::to_string(DotBlocks::most_vectors) + " rows";
    return check_kernel_sizes({p.rows, p.k, p.c});
  }
  std::vector<std::string> param_names() const override { return DotBlocksParams::names(); }
  std::vector<Tuning> tunings(const Problem& problem) const override {
    const int bits = params(problem).bits;
    return {DotBlocksParams{bits, 1}, DotBlocksParams{bits, 0}};
  }
  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const override {
    DotBlocks args = dot_blocks_args(problem, *packed);
    args.fetch = parse_flag("fetch", DotBlocksParams::of(tuning).fetch);
    return std::make_unique<PreparedDots<DotBlocks, DotBlocksKernels>>(problem, params(problem), kernels(), args,
                                                                       std::move(packed));
  }
};

}  // namespace

void linear_blocks_dot(RoutineList& list) {
  for (Isa isa : all_isas()) list.add<DotBlocksRoutine>(isa);
}

}  // namespace softneuro
