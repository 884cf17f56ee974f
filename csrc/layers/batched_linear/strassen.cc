// One Strassen product after the other (layers/products/strassen), dealt to threads by products.
#include <algorithm>

#include "layers/batched_linear/batched_linear.h"
#include "layers/products/gemm_tasks.h"
#include "layers/products/strassen.h"
#include "layers/products/strassen_cost.h"
#include "layers/products/strassen_routine.h"

namespace softneuro {
namespace {

StrassenShape shape_of(const BatchedLinearParams& p, int depth) {
  return {p.rows, p.k, p.c, parse_within("depth", depth, 1, deepest_strassen)};
}

class PreparedBatchedStrassen final : public Prepared {
 public:
  PreparedBatchedStrassen(const BatchedLinearParams& p, int threads, std::vector<StrassenGemm> products,
                          std::shared_ptr<const Packed> packed)
      : packed_(std::move(packed)),
        p_(p),
        products_(std::move(products)),
        tasks_(std::min<int64_t>(threads, p.batch)),
        scratch_(products_.empty() ? 0 : products_[0].scratch_bytes()) {}

  WorkspaceSize workspace() const override { return {.task = scratch_, .tasks = tasks_}; }

  void run(const RunArgs& args) const override {
    args.parallel_for(tasks_, [&](int64_t task) {
      const Range share = split_range(p_.batch, tasks_, task);
      for (int64_t b = share.begin; b < share.end; ++b) {
        StrassenArgs call;
        call.a = args.in[0].f32() + b * args.in[0].strides[0];
        call.a_stride = p_.c;
        call.dst = args.out.f32() + b * args.out.strides[0];
        call.dst_stride = p_.k;
        products_[static_cast<size_t>(b)].run(call, 0, args.workspace.task(task));
      }
    });
  }

 private:
  std::shared_ptr<const Packed> packed_;
  BatchedLinearParams p_;
  std::vector<StrassenGemm> products_;
  int64_t tasks_;
  size_t scratch_;  // bytes of a task
};

class StrassenBatchedLinear final : public Routine {
 public:
  explicit StrassenBatchedLinear(Isa isa)
      : Routine({.layer_type = "batched_linear",
                 .algorithm = "strassen",
                 .isa = isa,
                 .in = f32_nchw,
                 .out = f32_nchw,
                 .error = ErrorClass::strassen,
                 .spreads_nonfinite = true}) {}

  Refusal check(const Problem& problem) const override {
    if (!problem.layer->post.empty()) return "has post-ops";
    const BatchedLinearParams p = batched_linear_params(*problem.layer, problem.in[0]);
    const Refusal sizes = check_gemm_sizes(p.rows, p.k, p.c);
    if (!sizes.accepted()) return sizes;
    if (p.empty() || !strassen_saves(p.rows, p.k, p.c)) return "too small: more additions than multiplications saved";
    return {};
  }

  std::vector<std::string> param_names() const override { return StrassenParams::names(); }
  std::vector<Tuning> tunings(const Problem& problem) const override {
    const BatchedLinearParams p = batched_linear_params(*problem.layer, problem.in[0]);
    std::vector<Tuning> list;
    for (int depth = strassen_depth(p.rows, p.k, p.c); depth > 0; --depth) list.push_back(StrassenParams{depth, 2});
    return list;
  }

  Packing packing(const Problem& problem, const Tuning& tuning) const override {
    const BatchedLinearParams p = batched_linear_params(*problem.layer, problem.in[0]);
    return Packing().add("weights", p.batch * matrix_size(shape_of(p, StrassenParams::of(tuning).depth)));
  }
  void pack(const Problem& problem, const Tuning& tuning, Packed& to) const override {
    const BatchedLinearParams p = batched_linear_params(*problem.layer, problem.in[0]);
    const GemmKernels& kernels = *gemm_kernels(info().isa);
    const auto params = StrassenParams::of(tuning);
    const StrassenShape shape = shape_of(p, params.depth);
    const auto weight = problem.layer->weight("weight")->values();
    for (int64_t b = 0; b < p.batch; ++b) {
      strassen_pack(kernels, shape, gemm_tiling(kernels, params.panel).panel, weight.get() + b * p.k * p.c,
                    to.at<float>("weights") + b * matrix_size(shape));
    }
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const override {
    const BatchedLinearParams p = batched_linear_params(*problem.layer, problem.in[0]);
    const auto params = StrassenParams::of(tuning);
    const StrassenShape shape = shape_of(p, params.depth);
    const auto* weights = packed->at<float>("weights");
    std::vector<StrassenGemm> products;
    for (int64_t b = 0; b < p.batch; ++b) {
      products.emplace_back(info().isa, shape, params.panel, weights + b * matrix_size(shape), Activation{}, 1);
    }
    return std::make_unique<PreparedBatchedStrassen>(p, problem.threads, std::move(products), std::move(packed));
  }

  double expected_error(const Problem& problem, const Tuning& tuning) const override {
    const BatchedLinearParams p = batched_linear_params(*problem.layer, problem.in[0]);
    return strassen_error(shape_of(p, StrassenParams::of(tuning).depth));
  }

 private:
  int64_t matrix_size(const StrassenShape& shape) const {
    return static_cast<int64_t>(strassen_packed_size(*gemm_kernels(info().isa), shape));
  }
};

}  // namespace

void batched_linear_strassen(RoutineList& list) {
  for (Isa isa : all_isas()) list.add<StrassenBatchedLinear>(isa);
}

}  // namespace softneuro
