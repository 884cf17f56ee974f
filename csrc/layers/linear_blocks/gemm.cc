// Any number of rows: a panel of weights becomes floats in scratch and is multiplied with all rows.
#include <algorithm>

#include "layers/gemm_tasks.h"
#include "layers/linear/rows.h"
#include "layers/linear_blocks/packing.h"

namespace softneuro {
namespace {

SN_PARAMS(GemmBlocksParams, panel);

class PreparedGemmBlocks final : public Prepared {
 public:
  PreparedGemmBlocks(const Problem& problem, const DotBlocksKernels& kernels, const GemmKernels& gemm, int panel,
                     std::shared_ptr<const Packed> packed)
      : packed_(std::move(packed)),
        decode_(kernels.decode),
        gemm_(gemm),
        residual_(problem.layer->post.residual),
        weights_(dot_blocks_args(problem, *packed_)) {
    const LinearBlocksParams p = linear_blocks_params(*problem.layer, problem.in[0]);
    args_.k = weights_.k;
    args_.tiling = gemm_tiling(gemm, panel);
    args_.epilogue = weights_.epilogue;
    if (p.rows * p.k == 0) return;
    split_ = split_linear(p, gemm_panels(weights_.n, gemm.lanes, panel), problem.threads, SplitBy::panels);
    decoded_ = round_to_line(static_cast<size_t>(panel * gemm.lanes) * static_cast<size_t>(p.c) * sizeof(float));
    scratch_ = decoded_ + round_to_line(gemm.scratch_bytes(static_cast<int>(p.rows), args_.k, args_.tiling));
  }

  WorkspaceSize workspace() const override { return {.task = scratch_, .tasks = split_.tasks}; }

  void run(const RunArgs& args) const override {
    args.parallel_for(split_.tasks, [&](int64_t task) {
      std::byte* const scratch = args.workspace.task(task);
      split_.for_task(task, [&](int64_t, Range panels, Range rows) {
        for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
          run_panel(args, static_cast<int>(panel), rows, scratch);
        }
      });
    });
  }

 private:
  void run_panel(const RunArgs& args, int panel, Range rows, std::byte* scratch) const {
    const int vectors = args_.tiling.panel, lanes = gemm_.lanes, first = panel * vectors * lanes;
    const int end = std::min((panel + 1) * vectors, gemm_panels(weights_.n, lanes, 1));
    auto* const decoded = reinterpret_cast<float*>(scratch);
    decode_(weights_, panel * vectors, end, decoded);
    for_even_rows(args, residual_, rows, [&](const EvenRows& even) {
      GemmArgs call = args_;
      call.n = std::min(weights_.n - first, vectors * lanes);
      call.b = decoded;
      call.m = even.count;
      call.a = even.src;
      call.a_stride = even.src_stride;
      call.dst = even.dst + first;
      call.dst_stride = even.dst_stride;
      call.epilogue.residual = even.residual;
      call.epilogue = call.epilogue.from(first, static_cast<size_t>(first));
      gemm_.run(call, 0, 1, 0, call.m, scratch + decoded_);
    });
  }

  std::shared_ptr<const Packed> packed_;
  void (*decode_)(const DotBlocks&, int, int, float*);
  const GemmKernels& gemm_;
  bool residual_;
  DotBlocks weights_;
  GemmArgs args_;
  WorkSplit split_;
  size_t decoded_ = 0, scratch_ = 0;  // bytes of a task
};

class GemmBlocksRoutine final : public BlocksRoutine {
 public:
  explicit GemmBlocksRoutine(Isa isa) : BlocksRoutine("gemm", isa) {}

  Refusal check(const Problem& problem) const override {
    const LinearBlocksParams p = params(problem);
    return check_gemm_sizes(p.rows, p.k, p.c);
  }
  std::vector<std::string> param_names() const override { return GemmBlocksParams::names(); }
  std::vector<Tuning> tunings(const Problem&) const override { return {GemmBlocksParams{2}, GemmBlocksParams{3}}; }
  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const override {
    return std::make_unique<PreparedGemmBlocks>(problem, kernels(), *gemm_kernels(info().isa),
                                                GemmBlocksParams::of(tuning).panel, std::move(packed));
  }
};

}  // namespace

void linear_blocks_gemm(RoutineList& list) {
  for (Isa isa : all_isas()) list.add<GemmBlocksRoutine>(isa);
}

}  // namespace softneuro
