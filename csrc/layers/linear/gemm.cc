// Rows x prepacked weights. A single row streams the weights once (gemv), dealt to threads by output columns.
#include <algorithm>

#include "layers/gemm_tasks.h"
#include "layers/linear/rows.h"
#include "layers/packed_floats.h"

namespace softneuro {
namespace {

class PreparedLinear final : public Prepared {
 public:
  PreparedLinear(const Problem& problem, const GemmKernels& kernels, const Tuning& tuning,
                 std::shared_ptr<const Packed> packed)
      : packed_(std::move(packed)), kernels_(kernels), residual_(problem.layer->post.residual) {
    const LinearParams p = linear_params(*problem.layer, problem.in[0]);
    gemm_.n = static_cast<int>(p.k);
    gemm_.k = static_cast<int>(p.c);
    gemm_.tiling = gemm_tiling(kernels, tuning[0]);
    gemm_.b = packed_floats(packed_.get());
    gemm_.epilogue.activation = problem.layer->post.activation;
    if (problem.layer->find_weight("bias") != nullptr) {
      gemm_.epilogue.bias = gemm_.b + gemm_packed_size(gemm_.n, gemm_.k, kernels.lanes);
    }
    if (p.rows * p.k == 0) return;
    split_ = split_linear(p, gemm_panels(gemm_.n, kernels.lanes, gemm_.tiling.panel), problem.threads,
                          parse_split(tuning[1]));
    scratch_ = round_to_line(kernels.scratch_bytes(static_cast<int>(p.rows), gemm_.k, gemm_.tiling));
  }

  WorkspaceSize workspace() const override { return {.task = scratch_, .tasks = split_.tasks}; }

  void run(const RunArgs& args) const override {
    args.parallel_for(split_.tasks, [&](int64_t task) {
      split_.for_task(task, [&](int64_t, Range panels, Range rows) {
        for_even_rows(args, residual_, rows, [&](const EvenRows& even) {
          GemmArgs call = gemm_;
          call.m = even.count;
          call.a = even.src;
          call.a_stride = even.src_stride;
          call.dst = even.dst;
          call.dst_stride = even.dst_stride;
          call.epilogue.residual = even.residual;
          kernels_.run(call, static_cast<int>(panels.begin), static_cast<int>(panels.end), 0, call.m,
                       args.workspace.task(task));
        });
      });
    });
  }

 private:
  std::shared_ptr<const Packed> packed_;
  const GemmKernels& kernels_;
  bool residual_;
  GemmArgs gemm_;
  WorkSplit split_;
  size_t scratch_ = 0;  // bytes of a task
};

class GemmLinear final : public Routine {
 public:
  explicit GemmLinear(Isa isa)
      : Routine({.layer_type = "linear", .algorithm = "gemm", .isa = isa, .in = f32_nchw, .out = f32_nchw}) {}

  Refusal check(const Problem& problem) const override {
    const LinearParams p = linear_params(*problem.layer, problem.in[0]);
    return check_gemm_sizes(p.rows, p.k, p.c);
  }

  std::vector<std::string> param_names() const override { return {"panel", "split"}; }
  std::vector<Tuning> tunings(const Problem& problem) const override {
    const LinearParams p = linear_params(*problem.layer, problem.in[0]);
    const int split = p.rows > p.k ? 0 : 1;
    std::vector<Tuning> list{{2, split}, {3, split}};
    if (p.rows < 4) list.push_back({1, split});
    if (problem.threads > 1 && p.rows > 1) list.push_back({2, 1 - split});
    return list;
  }

  // As the kernel wants them, then the bias.
  std::string pack_key(const Problem&, const Tuning& tuning) const override {
    return "panel " + std::to_string(tuning[0]);
  }
  std::shared_ptr<const Packed> pack(const Problem& problem, const Tuning& tuning) const override {
    const LinearParams p = linear_params(*problem.layer, problem.in[0]);
    const GemmKernels& kernels = *gemm_kernels(info().isa);
    const int n = static_cast<int>(p.k), k = static_cast<int>(p.c);
    const int panel = gemm_tiling(kernels, tuning[0]).panel;
    const auto size = static_cast<int64_t>(gemm_packed_size(n, k, kernels.lanes));
    const Constant* bias = problem.layer->find_weight("bias");
    auto packed = std::make_shared<PackedFloats>(size + (bias != nullptr ? p.k : 0));
    const auto weight = problem.layer->weight("weight")->values();
    kernels.pack_b(n, k, panel, weight.get(), k, true, 0, gemm_panels(n, kernels.lanes, panel), packed->data());
    if (bias != nullptr) std::copy_n((*bias)->values().get(), p.k, packed->data() + size);
    return packed;
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const override {
    return std::make_unique<PreparedLinear>(problem, *gemm_kernels(info().isa), tuning, std::move(packed));
  }
};

}  // namespace

void linear_gemm(RoutineList& list) {
  for (Isa isa : all_isas()) list.add<GemmLinear>(isa);
}

}  // namespace softneuro
