#include "tune/measure/sparse_floor.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "tune/measure/profiler.h"
#include "tune/records/cost_keys.h"
#include "tune/search/candidates.h"

namespace softneuro {
namespace {

const std::string signature = "the sparse floor";
// What other layers may do better than the one that is measured.
constexpr double margin = 0.1;
constexpr double few_zeros = 0.5, many_zeros = 0.9;
// However it comes out: measured beside other programs, it may be far off, and it is kept.
constexpr double highest = 0.6;
constexpr Profiler::Effort effort{20, 0.05};

bool is_sparse(const Candidate& candidate) { return candidate.choice.routine->info().exploits_sparsity; }

// A 1x1 convolution: no other way to multiply dense ones is as far from its best as Winograd's is from theirs.
double fastest(Profiler& profiler, const TuneSettings& settings, double zeros, bool sparse) {
  constexpr int64_t channels = 64, size = 28;
  std::vector<float> values(channels * channels);
  for (size_t i = 0; i < values.size(); ++i) {
    const auto drawn = static_cast<double>(i * 7919 % 1009) / 1009;
    values[i] = drawn < zeros ? 0.0F : 0.5F;
  }
  Layer layer;
  layer.type = "conv2d";
  layer.set_weight("weight", constant_from({channels, channels, 1, 1}, std::move(values)));
  Problem problem{&layer, {{{1, channels, size, size}}}, {}, settings.threads};
  problem.outs = infer_outputs(layer_def(layer.type), layer, problem.in);
  std::vector<Candidate> candidates = enumerate_candidates(problem, settings.limits);
  std::vector<Candidate*> wanted;
  for (Candidate& candidate : candidates) {
    if (is_sparse(candidate) == sparse) wanted.push_back(&candidate);
  }
  profiler.measure(problem, wanted, effort);
  double least = INFINITY;
  for (const Candidate* candidate : wanted) {
    if (candidate->measured) least = std::min(least, candidate->seconds);
  }
  return least;
}

double measure(Profiler& profiler, const TuneSettings& settings) {
  const double dense = fastest(profiler, settings, 0, false);
  const double few = fastest(profiler, settings, few_zeros, true), many = fastest(profiler, settings, many_zeros, true);
  // A sparse routine's time is what it takes without any product, and its products.
  const double crossing = few_zeros + (few - dense) / (few - many) * (many_zeros - few_zeros);
  return std::isfinite(crossing) && few > many ? std::clamp(crossing - margin, 0.0, highest) : 0;
}

bool has_zeros(const Graph& graph) {
  return std::any_of(graph.layers().begin(), graph.layers().end(), [](const Layer& layer) {
    return std::any_of(layer.weights.begin(), layer.weights.end(),
                       [](const auto& weight) { return !weight.second->traits().str().empty(); });
  });
}

}  // namespace

double sparse_floor(const Graph& graph, const TuneSettings& settings, CostDb& db, const ParallelFor& parallel_for,
                    Timekeeper& timekeeper) {
  if (!has_zeros(graph)) return 0;
  Ledger ledger(db, settings.threads);
  const Subject routines = Subject::all_of("conv2d");
  if (const auto known = ledger.find_floor(signature, routines)) return *known;
  if (settings.mode != TuneMode::profile) return 0;
  Profiler profiler(settings.threads, parallel_for, CacheState::hot, timekeeper);
  const double floor = measure(profiler, settings);
  ledger.add_floor(signature, routines, floor);
  return floor;
}

}  // namespace softneuro
