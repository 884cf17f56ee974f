#include "tune/search/candidates.h"

#include <algorithm>

namespace softneuro {
namespace {

bool schema_allowed(const Schema& schema, const std::vector<std::string>& allowed) {
  return std::any_of(allowed.begin(), allowed.end(),
                     [&](const std::string& text) { return text == dtype_name(schema.dtype) || text == schema.str(); });
}

// A few products with each weight, or one: reading the weights is then the time, and fewer bytes are less of it from
// the first zeros on.
bool reads_weights(const Problem& problem) {
  constexpr int64_t few = 4;
  const Constant* weight = problem.layer->find_weight("weight");
  return weight != nullptr && (*weight)->shape().rank() > 0 &&
         problem.out().shape.elements() <= few * (*weight)->shape()[0];
}

// Zeros that come in a pattern may be worth it however few they are.
bool below_floor(const Candidate& candidate, const Problem& problem, const SearchLimits& limits) {
  if (!candidate.choice.routine->info().exploits_sparsity || reads_weights(problem)) return false;
  return std::all_of(problem.layer->weights.begin(), problem.layer->weights.end(), [&](const auto& weight) {
    const WeightTraits& traits = weight.second->traits();
    return traits.zeros < limits.sparse_floor && traits.of == 0 && traits.block_rows * traits.block_columns == 1;
  });
}

bool within(const Candidate& candidate, const Problem& problem, const SearchLimits& limits) {
  if (candidate.choice.routine->info().spreads_nonfinite && limits.strict_nonfinite) return false;
  if (candidate.error > limits.max_error || below_floor(candidate, problem, limits)) return false;
  // Where values lie on a grid, results are likely to be brought to one, too, and then a small error is a whole step.
  const bool on_grid = std::any_of(problem.in.begin(), problem.in.end(),
                                   [](const TensorDesc& desc) { return desc.quantization != nullptr; });
  if (on_grid && !limits.rounded_anyway && candidate.choice.routine->info().error != ErrorClass::exact) return false;
  // Integers lose nothing in any type that holds them, nor quantized values as bytes.
  const auto allowed = [&](const Schema& schema, const TensorDesc& desc) {
    const bool exact = desc.kind != ValueKind::real || schema.dtype == DType::qint8;
    return schema_allowed(schema, limits.schemas) ||
           (exact && schema_allowed(schema.with(DType::float32), limits.schemas));
  };
  return std::equal(candidate.outs.begin(), candidate.outs.end(), problem.outs.begin(), problem.outs.end(), allowed) &&
         std::equal(candidate.in.begin(), candidate.in.end(), problem.in.begin(), problem.in.end(), allowed);
}

// Blocks are as wide as a level's vectors, all else of a schema is no matter of levels.
bool same_but_for_block(const Schema& a, const Schema& b) {
  return a.platform == b.platform && a.dtype == b.dtype && a.layout.kind == b.layout.kind &&
         a.layout.strided == b.layout.strided;
}

bool same_but_for_isa(const Candidate& a, const Candidate& b) {
  return a.choice.routine->info().algorithm == b.choice.routine->info().algorithm &&
         std::equal(a.in.begin(), a.in.end(), b.in.begin(), b.in.end(), same_but_for_block) &&
         std::equal(a.outs.begin(), a.outs.end(), b.outs.begin(), b.outs.end(), same_but_for_block);
}

// The same loops at a lower level lose by their narrower vectors: timing them would double or treble the tuning time.
// SOFTNEURO_MAX_ISA is there for machines where they would not.
void drop_lower_levels(std::vector<Candidate>& candidates) {
  const auto isa = [](const Candidate& c) { return c.choice.routine->info().isa; };
  const auto& isas = available_isas();
  const auto rank = [&](Isa level) { return std::find(isas.begin(), isas.end(), vectors_of(level)) - isas.begin(); };
  // What adds to one level's vectors is better; but tiles may be too large for a problem.
  const auto better = [&](Isa a, Isa b) {
    if (a == Isa::amx && vectors_of(a) == vectors_of(b)) return false;
    return rank(a) != rank(b) ? rank(a) < rank(b) : a != vectors_of(a) && b == vectors_of(b);
  };
  const std::vector<Candidate> all = candidates;
  std::erase_if(candidates, [&](const Candidate& c) {
    return std::any_of(all.begin(), all.end(), [&](const Candidate& other) {
      return same_but_for_isa(c, other) && better(isa(other), isa(c));
    });
  });
}

// A fusion's operations, as if all of its stages had the last one's pixels.
double flops_of_stages(const Problem& problem) {
  double products = 0;
  for (const auto& [role, value] : problem.layer->weights) {
    if (role.ends_with("_weight")) products += static_cast<double>(value->elements());
  }
  const Shape& out = problem.out().shape;
  const int64_t channels = out.rank() > 1 ? std::max<int64_t>(1, out[1]) : 1;
  return 2 * products * static_cast<double>(out.elements()) / static_cast<double>(channels);
}

double flops(const Problem& problem) {
  const Constant* weight = problem.layer->find_weight("weight");
  const double outputs = static_cast<double>(problem.out().shape.elements());
  if (weight == nullptr) return std::max(4 * outputs, flops_of_stages(problem));
  const Shape& shape = (*weight)->shape();
  if (shape.rank() == 0) return 4 * outputs;
  return 2 * outputs * static_cast<double>(std::max<int64_t>(1, shape.elements() / std::max<int64_t>(1, shape[0])));
}

// The result counts bytes of float32, and is at least 1, as it is divided by.
double weight_bytes(const Problem& problem) {
  double bytes = 0;
  for (const auto& [role, value] : problem.layer->weights) bytes += 4 * static_cast<double>(value->elements());
  return std::max(bytes, 1.0);
}

// With a part of the weights.
double work_seconds(const Problem& problem, double part) {
  double elements = 0;
  for (const TensorDesc& desc : problem.outs) elements += static_cast<double>(desc.shape.elements());
  for (const TensorDesc& desc : problem.in) elements += static_cast<double>(desc.shape.elements());
  for (const auto& [role, value] : problem.layer->weights) elements += part * static_cast<double>(value->elements());
  return part * flops(problem) / 5e10 + elements * sizeof(float) / 1e10;
}

}  // namespace

std::vector<Candidate> enumerate_candidates(const ProblemClass& cls, const Problem& whole, const SearchLimits& limits) {
  const Problem& problem = cls.problem();
  std::vector<Candidate> all, allowed;
  for (const Routine* routine : accepting_routines(cls)) {
    if (!routine->promising(problem)) continue;
    Candidate candidate;
    candidate.in = routine->input_schemas(problem);
    candidate.outs = routine->output_schemas(problem);
    for (const Tuning& tuning : routine->tunings(problem)) {
      candidate.choice = {routine, tuning};
      candidate.descriptor = routine->descriptor(tuning);
      candidate.error = routine->expected_error(problem, tuning);
      candidate.packed_bytes = routine->packed_bytes(whole, tuning);
      candidate.seconds = routine->info().view                ? 0
                          : routine->info().exploits_sparsity ? estimate_sparse_seconds(problem, candidate.packed_bytes)
                                                              : estimate_seconds(problem, all.size());
      if (!routine->info().exploits_sparsity && reads_weights(problem) && candidate.packed_bytes > 0) {
        candidate.seconds *= static_cast<double>(candidate.packed_bytes) / weight_bytes(problem);
      }
      all.push_back(candidate);
      if (within(candidate, problem, limits)) allowed.push_back(candidate);
    }
  }
  drop_lower_levels(allowed);
  if (!allowed.empty()) return allowed;
  std::erase_if(all, [](const Candidate& candidate) {
    return candidate.outs.front().layout != Layout::nchw() ||
           candidate.choice.routine->info().error != ErrorClass::exact;
  });
  return all;
}

double estimate_seconds(const Problem& problem, size_t rank) {
  return 1e-7 + work_seconds(problem, 1) * (1 + 0.2 * static_cast<double>(rank));
}

double estimate_sparse_seconds(const Problem& problem, size_t packed_bytes) {
  const double kept = std::min(1.0, static_cast<double>(packed_bytes) / weight_bytes(problem));
  // A product that is left takes as long as some that are not: more than that with Winograd.
  constexpr double dearer = 3;
  return 1e-7 + work_seconds(problem, dearer * kept);
}

double estimate_adapt_seconds(const TensorDesc& desc, const Schema& from, const Schema& to) {
  return 1e-6 + static_cast<double>(bytes(desc, from) + bytes(desc, to)) / 1e10;
}

}  // namespace softneuro
