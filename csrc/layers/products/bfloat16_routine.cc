#include "layers/products/bfloat16_routine.h"

#include <algorithm>
#include <cmath>

#include "kernels/integers.h"

namespace softneuro {

std::vector<Isa> bfloat16_isas() {
  return architecture_has(Isa::amx) ? std::vector{Isa::scalar, Isa::amx} : std::vector{Isa::scalar};
}

const char* bfloat16_algorithm(int parts) { return parts == 3 ? "bf16x6" : "bf16x3"; }

// Two parts: of their own rounding and the product that is left out, whatever the number of sums. Three: of the sums
// alone. Tiles round a sum once for 16 or 32 products (4e-8 at 16 channels, 2.5e-7 at 1024, 5e-7 at 4096: some half of
// what sums of FMAs err by), plain code for each of six times as many.
double bfloat16_error(int parts, Isa isa, int64_t products) {
  if (parts == 2) return 5e-6;
  return (isa == Isa::amx ? 1e-8 : 4e-8) * std::sqrt(static_cast<double>(std::max<int64_t>(products, 25)));
}

Bfloat16Routine::Bfloat16Routine(std::string layer_type, Isa isa, Schema schema, int parts)
    : Routine({.layer_type = std::move(layer_type),
               .algorithm = bfloat16_algorithm(parts),
               .isa = isa,
               .in = schema,
               .out = schema,
               .error = ErrorClass::bfloat16,
               .spreads_nonfinite = true}),
      parts_(parts) {}

ConvBfloat16Shape Bfloat16Routine::sized(const Problem& problem, int panel) const {
  ConvBfloat16Shape s = shape(problem);
  s.parts = parts_;
  s.panel = panel;
  return s;
}

Bfloat16Params Bfloat16Routine::checked(const Tuning& tuning) const {
  const auto params = Bfloat16Params::of(tuning);
  if (params.rows < 1 || params.panel < 1 || params.panel > 2) {
    throw Error("rows must be positive and panel 1 or 2, not " + std::to_string(params.rows) + " and " +
                std::to_string(params.panel));
  }
  if (params.depth < 0 || params.depth % (2 * block()) != 0) {
    throw Error("depth must be a multiple of " + std::to_string(2 * block()) + ", not " + std::to_string(params.depth));
  }
  return params;
}

Refusal Bfloat16Routine::check(const Problem& problem) const {
  if (const Refusal refusal = is_convolution(problem); !refusal.accepted()) return refusal;
  if (bfloat16_least_bytes(sized(problem, 1), block()) > most_scratch) return "needs more than 256 MiB of scratch";
  return {};
}

bool Bfloat16Routine::promising(const Problem& problem) const {
  return bfloat16_promises(info().isa, shape(problem), block());
}

std::vector<Tuning> Bfloat16Routine::tunings(const Problem& problem) const {
  const auto choices = bfloat16_choices(sized(problem, 2), block(), likely_split(problem), problem.threads);
  return {choices.begin(), choices.end()};
}

Packing Bfloat16Routine::packing(const Problem& problem, const Tuning&) const {
  const ConvBfloat16Shape s = sized(problem, 1);
  Packing packing;
  packing.add("weights", conv_bfloat16_packed_bytes(s, block()) / sizeof(BFloat16), DType::bfloat16,
              parts_ * problem.layer->weight("weight")->elements());
  add_padded(packing, "bias", problem.layer->find_weight("bias"), round_up(s.out_channels, block()));
  return packing;
}

std::string Bfloat16Routine::pack_key(const Problem&, const Tuning& tuning) const {
  return "panel " + std::to_string(Bfloat16Params::of(tuning).panel);
}

void Bfloat16Routine::pack(const Problem& problem, const Tuning& tuning, Packed& to) const {
  kernels().pack(sized(problem, checked(tuning).panel), problem.layer->weight("weight")->values().get(),
                 to.at<BFloat16>("weights"));
  pack_padded(problem.layer->find_weight("bias"), to, "bias");
}

std::unique_ptr<const Prepared> Bfloat16Routine::prepare(const Problem& problem, const Tuning& tuning,
                                                         std::shared_ptr<const Packed> packed) const {
  const Bfloat16Params params = checked(tuning);
  ConvBfloat16Args args{};
  args.shape = sized(problem, params.panel);
  args.rows = std::max(std::min(params.rows, args.shape.y.out), 1);
  args.depth = params.depth;
  args.weights = packed->at<BFloat16>("weights");
  args.epilogue = {.bias = packed->at<float>("bias"), .activation = problem.layer->post.activation};
  return prepare_tiles(problem, args, params.split, std::move(packed));
}

double Bfloat16Routine::expected_error(const Problem& problem, const Tuning&) const {
  const ConvBfloat16Shape s = shape(problem);
  return bfloat16_error(parts_, info().isa, int64_t{s.in_channels} * s.taps());
}

}  // namespace softneuro
