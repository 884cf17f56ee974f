// A few rows x integers that become floats in registers: where weights come from memory, their bytes are the time.
#include "kernels/dot_blocks/layout.h"
#include "layers/kernel_sizes.h"
#include "layers/linear/rows.h"
#include "layers/linear_blocks/packing.h"
#include "layers/params.h"

namespace softneuro {
namespace {

SN_PARAMS(DotBlocksParams, fetch);

class PreparedDotBlocks final : public Prepared {
 public:
  PreparedDotBlocks(const Problem& problem, const DotBlocksKernels& kernels, bool fetch,
                    std::shared_ptr<const Packed> packed)
      : packed_(std::move(packed)),
        kernels_(kernels),
        residual_(problem.layer->post.residual),
        args_(dot_blocks_args(problem, *packed_)) {
    const LinearBlocksParams p = linear_blocks_params(*problem.layer, problem.in[0]);
    args_.fetch = fetch;
    rows_ = p.rows;
    if (p.rows * p.k == 0) return;
    const auto weights = static_cast<double>(p.k * p.c);
    const int threads = worth_threads(2 * static_cast<double>(p.rows) * weights, weights * p.bits / 8, problem.threads);
    constexpr int64_t unit = 2;  // that the kernel reads at a time
    split_ = WorkSplit(1, dot_blocks_panels(args_.n, kernels.lanes), 1, threads, SplitBy::panels, unit);
  }

  void run(const RunArgs& args) const override { run_dots(args, split_, residual_, rows_, args_, kernels_.run); }

 private:
  std::shared_ptr<const Packed> packed_;
  const DotBlocksKernels& kernels_;
  bool residual_;
  DotBlocks args_;
  int64_t rows_ = 0;
  WorkSplit split_;
};

class DotBlocksRoutine final : public BlocksRoutine {
 public:
  explicit DotBlocksRoutine(Isa isa) : BlocksRoutine("dot", isa) {}

  Refusal check(const Problem& problem) const override {
    const LinearBlocksParams p = params(problem);
    if (p.rows > DotBlocks::most_vectors) return "more than " + std::to_string(DotBlocks::most_vectors) + " rows";
    return check_kernel_sizes({p.rows, p.k, p.c});
  }
  std::vector<std::string> param_names() const override { return DotBlocksParams::names(); }
  std::vector<Tuning> tunings(const Problem&) const override { return {DotBlocksParams{1}, DotBlocksParams{0}}; }
  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const override {
    const bool fetch = parse_flag("fetch", DotBlocksParams::of(tuning).fetch);
    return std::make_unique<PreparedDotBlocks>(problem, kernels(), fetch, std::move(packed));
  }
};

}  // namespace

void linear_blocks_dot(RoutineList& list) {
  for (Isa isa : all_isas()) list.add<DotBlocksRoutine>(isa);
}

}  // namespace softneuro
