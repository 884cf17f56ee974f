// A few rows x weights in 16 or 20 bits: where weights come from memory, their bytes are the time.
#include <algorithm>

#include "kernels/dot_scaled/dot_scaled.h"
#include "kernels/dot_scaled/layout.h"
#include "layers/gemm_tasks.h"
#include "layers/linear/rows.h"
#include "layers/packed_floats.h"

namespace softneuro {
namespace {

class PreparedScaled final : public Prepared {
 public:
  PreparedScaled(const Problem& problem, const DotScaledKernels& kernels, const DotScaled& args,
                 std::shared_ptr<const Packed> packed)
      : packed_(std::move(packed)), kernels_(kernels), residual_(problem.layer->post.residual), args_(args) {
    const LinearParams p = linear_params(*problem.layer, problem.in[0]);
    rows_ = p.rows;
    if (p.rows * p.k == 0) return;
    const auto weights = static_cast<double>(p.k * p.c);
    const int threads =
        worth_threads(2 * static_cast<double>(p.rows) * weights, weights * args.bits / 8, problem.threads);
    constexpr int64_t unit = 2;  // that the kernel reads at a time
    split_ = WorkSplit(1, dot_scaled_panels(args.n, kernels.lanes), 1, threads, SplitBy::panels, unit);
  }

  void run(const RunArgs& args) const override {
    SharedWork work(split_);
    args.parallel_for(split_.tasks, [&](int64_t task) {
      work.for_task(task, [&](int64_t, Range panels, Range) {
        for_even_rows(args, residual_, {0, rows_}, [&](const EvenRows& even) {
          DotScaled call = args_;
          call.vectors = even.count;
          call.x = even.src;
          call.x_stride = even.src_stride;
          call.dst = even.dst;
          call.dst_stride = even.dst_stride;
          call.epilogue.residual = even.residual;
          kernels_.run(call, static_cast<int>(panels.begin), static_cast<int>(panels.end));
        });
      });
    });
  }

 private:
  std::shared_ptr<const Packed> packed_;
  const DotScaledKernels& kernels_;
  bool residual_;
  DotScaled args_;
  int64_t rows_ = 0;
  WorkSplit split_;
};

// Packed weights: as the kernel wants them, then the bias.
class ScaledLinear final : public Routine {
 public:
  explicit ScaledLinear(Isa isa)
      : Routine({.layer_type = "linear",
                 .algorithm = "scaled",
                 .isa = isa,
                 .in = f32_nchw,
                 .out = f32_nchw,
                 .error = ErrorClass::rounded,
                 .spreads_nonfinite = true}) {}

  Refusal check(const Problem& problem) const override {
    const LinearParams p = params(problem);
    if (p.rows > DotScaled::most_vectors) return "more than " + std::to_string(DotScaled::most_vectors) + " rows";
    return check_gemm_sizes(p.rows, p.k, p.c);
  }

  // Weights that stay in a core's own caches are near enough.
  bool promising(const Problem& problem) const override {
    const LinearParams p = params(problem);
    return 4 * p.k * p.c > (int64_t{1} << 20);
  }

  std::vector<std::string> param_names() const override { return {"bits", "fetch"}; }
  std::vector<Tuning> tunings(const Problem&) const override { return {{20, 0}, {20, 1}, {16, 0}, {16, 1}}; }

  size_t packed_bytes(const Problem& problem, const Tuning& tuning) const override {
    const Constant* bias = problem.layer->find_weight("bias");
    const auto biases = static_cast<size_t>(bias != nullptr ? params(problem).k : 0);
    return (weights_size(problem, tuning) + biases) * sizeof(float);
  }
  std::string pack_key(const Problem&, const Tuning& tuning) const override {
    return "bits " + std::to_string(tuning[0]);
  }
  std::shared_ptr<const Packed> pack(const Problem& problem, const Tuning& tuning) const override {
    check_bits(tuning[0]);
    const LinearParams p = params(problem);
    auto packed = std::make_shared<PackedFloats>(static_cast<int64_t>(packed_bytes(problem, tuning) / sizeof(float)));
    kernels().pack(static_cast<int>(p.k), static_cast<int>(p.c), tuning[0],
                   problem.layer->weight("weight")->values().get(), packed->data());
    if (const Constant* bias = problem.layer->find_weight("bias")) {
      std::copy_n((*bias)->values().get(), p.k, packed->data() + weights_size(problem, tuning));
    }
    return packed;
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const override {
    const LinearParams p = params(problem);
    check_bits(tuning[0]);
    if (tuning[1] != 0 && tuning[1] != 1) throw Error("fetch must be 0 or 1, not " + std::to_string(tuning[1]));
    DotScaled args{};
    args.weights = packed_floats(packed.get());
    args.n = static_cast<int>(p.k);
    args.k = static_cast<int>(p.c);
    args.bits = tuning[0];
    args.fetch = tuning[1] != 0;
    if (problem.layer->find_weight("bias") != nullptr) {
      args.epilogue.bias = args.weights + weights_size(problem, tuning);
    }
    args.epilogue.activation = problem.layer->post.activation;
    return std::make_unique<PreparedScaled>(problem, kernels(), args, std::move(packed));
  }

  double expected_error(const Problem&, const Tuning& tuning) const override { return dot_scaled_error(tuning[0]); }

 private:
  static LinearParams params(const Problem& problem) { return linear_params(*problem.layer, problem.in[0]); }
  static void check_bits(int bits) {
    if (!DotScaled::has_bits(bits)) throw Error("bits must be 16 or 20, not " + std::to_string(bits));
  }
  const DotScaledKernels& kernels() const { return *dot_scaled_kernels(info().isa); }
  // Floats.
  size_t weights_size(const Problem& problem, const Tuning& tuning) const {
    const LinearParams p = params(problem);
    return dot_scaled_packed_size(static_cast<int>(p.k), static_cast<int>(p.c), tuning[0], kernels().lanes);
  }
};

}  // namespace

void linear_scaled(RoutineList& list) {
  for (Isa isa : all_isas()) list.add<ScaledLinear>(isa);
}

}  // namespace softneuro
