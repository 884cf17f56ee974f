// A few rows x weights in 16 or 20 bits: where weights come from memory, their bytes are the time.
#include "kernels/dot_scaled/dot_scaled.h"
#include "kernels/dot_scaled/layout.h"
#include "layers/contract/params.h"
#include "layers/linear/rows.h"
#include "layers/shared/kernel_sizes.h"

namespace softneuro {
namespace {

SN_PARAMS(ScaledParams, bits, fetch);

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
    const LinearParams p = linear_params(problem);
    if (p.rows > DotScaled::most_vectors) return "more than " + std::to_string(DotScaled::most_vectors) + " rows";
    return check_kernel_sizes({p.rows, p.k, p.c});
  }

  // Weights that stay in a core's own caches are near enough.
  bool promising(const Problem& problem) const override {
    const LinearParams p = linear_params(problem);
    return 4 * p.k * p.c > (int64_t{1} << 20);
  }

  std::vector<std::string> param_names() const override { return ScaledParams::names(); }
  std::vector<Tuning> tunings(const Problem&) const override {
    return {ScaledParams{20, 0}, ScaledParams{20, 1}, ScaledParams{16, 0}, ScaledParams{16, 1}};
  }

  std::string pack_key(const Problem&, const Tuning& tuning) const override {
    return "bits " + std::to_string(ScaledParams::of(tuning).bits);
  }
  Packing packing(const Problem& problem, const Tuning& tuning) const override {
    const LinearParams p = linear_params(problem);
    const int bits = checked(tuning).bits, lanes = kernels().lanes;
    Packing packing;
    packing.add("weights", dot_scaled_packed_size(narrow(p.k), narrow(p.c), bits, lanes), DType::int32);
    add_bias(packing, *problem.layer, p.k);
    return packing;
  }
  void pack(const Problem& problem, const Tuning& tuning, Packed& to) const override {
    const LinearParams p = linear_params(problem);
    kernels().pack(narrow(p.k), narrow(p.c), checked(tuning).bits, problem.layer->weight("weight")->values().get(),
                   to.at<int32_t>("weights"));
    pack_bias(*problem.layer, to);
  }

  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const override {
    const LinearParams p = linear_params(problem);
    const ScaledParams own = checked(tuning);
    DotScaled args{};
    args.weights = packed->at<int32_t>("weights");
    args.n = narrow(p.k);
    args.k = narrow(p.c);
    args.bits = own.bits;
    args.fetch = own.fetch != 0;
    args.epilogue = {.bias = packed->find<float>("bias"), .activation = problem.layer->post.activation};
    return std::make_unique<PreparedDots<DotScaled, DotScaledKernels>>(problem, p, kernels(), args, std::move(packed));
  }

  double expected_error(const Problem&, const Tuning& tuning) const override {
    return dot_scaled_error(ScaledParams::of(tuning).bits);
  }

 private:
  static ScaledParams checked(const Tuning& tuning) {
    const auto own = ScaledParams::of(tuning);
    if (!DotScaled::has_bits(own.bits)) throw Error("bits must be 16 or 20, not " + std::to_string(own.bits));
    parse_flag("fetch", own.fetch);
    return own;
  }
  const DotScaledKernels& kernels() const { return *dot_scaled_kernels(info().isa); }
};

}  // namespace

void linear_scaled(RoutineList& list) {
  for (Isa isa : all_isas()) list.add<ScaledLinear>(isa);
}

}  // namespace softneuro
