#include "tune/search/sparse_gain.h"

#include <algorithm>

#include "tune/search/measures.h"

namespace softneuro {
namespace {

bool exploits_sparsity(const Candidate& candidate) { return candidate.choice.routine->info().exploits_sparsity; }

}  // namespace

void note_sparse_gain(const Graph& graph, const GraphCosts& costs, const Objective& objective, const DprsResult& best,
                      const std::function<std::optional<DprsResult>(const Objective&)>& solve, TuneResult& result) {
  bool any = std::any_of(costs.fused.begin(), costs.fused.end(),
                         [](const FusedCost& fused) { return exploits_sparsity(fused.candidate); });
  for (size_t l = 0; l < costs.layers.size(); ++l) {
    LayerReport& layer = result.layers[l];
    for (const Candidate& candidate : costs.layers[l]) {
      any = any || exploits_sparsity(candidate);
      if (!candidate.measured) continue;
      double& fastest = exploits_sparsity(candidate) ? layer.sparse_s : layer.dense_s;
      fastest = std::min(fastest, candidate.seconds);
    }
  }
  result.best_s = plan_cost(objective.seconds(), best);
  if (!any) {
    result.dense_s = result.best_s;
    return;
  }
  Objective dense = objective;
  const size_t sparse = dense.add(
      measure_candidates(graph, costs, [](const Candidate& one, int) { return exploits_sparsity(one) ? 1.0 : 0.0; }),
      Pricing::bound, forbidden);
  const std::optional<DprsResult> plan = solve(dense);
  // Zero is "not known": no plan keeps to max_memory, or a layer has no other routine.
  if (plan && dense.measure(sparse).of(*plan) == 0) result.dense_s = plan_cost(objective.seconds(), *plan);
}

}  // namespace softneuro
