#include "tune/measure/costs.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "tune/measure/measuring.h"
#include "tune/measure/sparse_floor.h"
#include "tune/measure/work.h"
#include "tune/search/pinned.h"
#include "tune/search/solution.h"

namespace softneuro {
namespace {

constexpr int most_checks = 4;

// What the best plan runs without its having been measured: (layer of `work`, candidate).
std::vector<std::pair<size_t, size_t>> chosen_forecasts(const Graph& graph, const Work& work, const GraphCosts& costs) {
  const DprsResult plan = dprs_solve(to_dprs(graph, costs));
  std::vector<std::pair<size_t, size_t>> list;
  for (size_t l = 0; l < graph.layers().size(); ++l) {
    const Candidate* chosen = chosen_candidate(costs, plan, l);
    if (chosen == nullptr || chosen->measured || !chosen->forecast) continue;
    const int group = plan.choices[l].group;
    const size_t item = group < 0 ? work.of_layer[l] : work.of_fusion[costs.fusion_index(static_cast<size_t>(group))];
    const auto& candidates = work.layers[item].candidates;
    const auto at = std::find_if(candidates.begin(), candidates.end(),
                                 [&](const Candidate& other) { return other.descriptor == chosen->descriptor; });
    const std::pair entry(item, static_cast<size_t>(at - candidates.begin()));
    if (std::find(list.begin(), list.end(), entry) == list.end()) list.push_back(entry);
  }
  return list;
}

}  // namespace

// As reals in float32, whatever the model has them in: what routines pack is measured by it.
double model_weight_bytes(const Graph& graph) {
  double total = 0;
  for (const Layer& layer : graph.layers()) {
    for (const auto& [role, value] : layer.weights) total += static_cast<double>(bytes(value->desc(), f32_nchw));
  }
  return total;
}

size_t GraphCosts::fusion_index(size_t group) const {
  return static_cast<size_t>(fused[group].fusion - fusions.data());
}

int GraphCosts::schema_index(const Schema& schema) const {
  const auto at = std::find(schemas.begin(), schemas.end(), schema);
  return at == schemas.end() ? -1 : static_cast<int>(at - schemas.begin());
}

GraphCosts guess_costs(const Graph& graph, const TuneSettings& settings) {
  GraphCosts costs;
  const Work work = collect(graph, settings, costs);
  for (const auto& item : work.layers) costs.candidates += static_cast<int>(item.candidates.size());
  costs.candidates += static_cast<int>(work.adapts.size());
  costs.guessed = costs.candidates;
  distribute(graph, work, costs);
  leave_asked(graph, settings, work, costs);
  return costs;
}

GraphCosts find_costs(const Graph& graph, const TuneSettings& asked, CostDb& db, const ParallelFor& parallel_for,
                      const Progress& progress, Timekeeper& timekeeper) {
  auto stage = std::make_optional<Timekeeper::Stage>(timekeeper, "enumerate");
  if (asked.mode == TuneMode::off) return guess_costs(graph, asked);
  TuneSettings settings = asked;
  settings.limits.sparse_floor = sparse_floor(graph, asked, db, parallel_for, timekeeper);
  GraphCosts costs;
  Work work = collect(graph, settings, costs);
  const CacheState cache_state = cache_state_for(static_cast<size_t>(model_weight_bytes(graph)));
  Measuring measuring(work, graph.structural_hash(), settings, db, cache_state, timekeeper, progress);
  stage.emplace(timekeeper, "recall");
  measuring.recall();
  stage.emplace(timekeeper, "measure");
  const auto spread = [&] {
    sum_childnets(work.layers, settings.threads);
    distribute(graph, work, costs);
    leave_asked(graph, settings, work, costs);
  };
  if (!settings.pins.empty()) spread();  // what leaves nothing is said before anything is measured
  if (settings.mode == TuneMode::profile && measuring.is_missing()) {
    Profiler profiler(settings.threads, parallel_for, cache_state, timekeeper);
    measuring.measure(profiler);
    for (int round = 0; round < most_checks; ++round) {
      spread();
      if (!measuring.confirm(profiler, chosen_forecasts(graph, work, costs))) break;
    }
    measuring.finish(profiler);
  }
  measuring.log();
  measuring.count(costs);
  stage.emplace(timekeeper, "enumerate");
  spread();
  return costs;
}

}  // namespace softneuro
