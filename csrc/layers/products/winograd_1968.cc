#include "layers/products/winograd_1968.h"

#include <algorithm>

#include "base/cpu_traits.h"
#include "layers/shared/split.h"

namespace softneuro {

Winograd1968Routine::Winograd1968Routine(std::string layer_type, Isa isa, Schema schema)
    : Routine({.layer_type = std::move(layer_type),
               .algorithm = "winograd_1968",
               .isa = isa,
               .in = schema,
               .out = schema,
               .error = ErrorClass::winograd_1968,
               .spreads_nonfinite = true}) {}

// With 16 registers samples are loaded for each use as often as there are operations, and loads take the time that
// additions save. To prepare a pixel takes what more than one output block's products save.
bool winograd_1968_promises(Isa isa, int64_t out_channels) {
  const int block = isa_block(isa);
  return adds_beside_fmas() && block == 16 && out_channels >= 2 * block;
}

Packing winograd_1968_packing(const PointwiseShape& shape, Isa isa) {
  constexpr int64_t terms = 3;  // of an output channel
  return Packing().add("weights", conv_winograd_1968_packed_size(shape, isa_block(isa)), DType::float32,
                       shape.out_channels * (shape.in_channels + terms));
}

void pack_winograd_1968(const Layer& layer, const PointwiseShape& shape, Isa isa, Packed& to) {
  const Constant* bias = layer.find_weight("bias");
  const auto biases = bias != nullptr ? (*bias)->values() : nullptr;
  conv_winograd_1968_pack(shape, isa_block(isa), layer.weight("weight")->values().get(), biases.get(),
                          to.at<float>("weights"));
}

double winograd_1968_error(int64_t in_channels) { return 1.5e-7 + 1e-9 * static_cast<double>(in_channels); }

bool Winograd1968Routine::promising(const Problem& problem) const {
  return winograd_1968_promises(info().isa, shape(problem).out_channels) && pixels(problem) >= 16;
}

std::vector<Tuning> Winograd1968Routine::tunings(const Problem& problem) const {
  // Prepared pixels should stay in L2 while every panel passes over them.
  const int64_t budget = l2_bytes() / 4;
  const int64_t channels = std::max(shape(problem).in_channels, 1), all = std::max<int64_t>(pixels(problem), 1);
  const int64_t rows = std::clamp<int64_t>(budget / (channels * 4) / 16 * 16, 16, 1 << 20);
  const int64_t share = (all + problem.threads - 1) / problem.threads;  // of a thread, where rows are split
  const int split = likely_split(problem);
  std::vector<Tuning> list;
  const auto add = [&](int64_t wanted, int by) {
    Tuning tuning = Winograd1968Params{static_cast<int>(std::min(wanted, by == 0 ? share : all)), by};
    if (std::find(list.begin(), list.end(), tuning) == list.end()) list.push_back(std::move(tuning));
  };
  add(rows, split);
  add(rows / 4 / 16 * 16 + 16, split);
  add(4 * rows, split);
  if (problem.threads > 1) add(rows, 1 - split), add(2 * rows, 1 - split);
  return list;
}

Packing Winograd1968Routine::packing(const Problem& problem, const Tuning&) const {
  return winograd_1968_packing(shape(problem), info().isa);
}

void Winograd1968Routine::pack(const Problem& problem, const Tuning&, Packed& to) const {
  pack_winograd_1968(*problem.layer, shape(problem), info().isa, to);
}

std::unique_ptr<const Prepared> Winograd1968Routine::prepare(const Problem& problem, const Tuning& tuning,
                                                             std::shared_ptr<const Packed> packed) const {
  const auto params = Winograd1968Params::of(tuning);
  parse_positive("rows", params.rows);
  return prepare_products(problem, params, std::move(packed));
}

double Winograd1968Routine::expected_error(const Problem& problem, const Tuning&) const {
  return winograd_1968_error(shape(problem).in_channels);
}

}  // namespace softneuro
