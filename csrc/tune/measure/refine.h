// Integrated profiling: what routines take in the running net, which their times alone do not tell. Blobs that leave
// the caches between producer and consumer, threads that share the memory's bandwidth, and neighbours' weights count
// there.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "tune/measure/costs.h"
#include "tune/measure/trial.h"
#include "tune/search/objective.h"

namespace softneuro {

struct PlanSearch {
  // The best plan, or nothing if none has the memory it needs.
  std::function<std::optional<DprsResult>(const Objective&)> solve;
  // Whether it may become the net's, or is only good for learning what its routines take.
  std::function<bool(const DprsResult&)> acceptable;
};

struct Refined {
  std::vector<DprsResult> plans;  // besides the best
  Objective objective;            // by what was seen in nets
};

// Plans worth timing as wholes, besides `best`, the best by `objective`. Runs that one step by step in its net,
// corrects the costs of the routines in it, and solves again: once with the fusions that have not been in a net a fifth
// better, and then with routines that have not been in a net as much worse as the layer's measured ones turned out.
// That ends when no plan promises to be a hundredth faster than those that were run, or when its time is up.
// Times come from the database where it knows them, and are measured only if the mode allows it.
Refined refine(const Graph& graph, const GraphCosts& costs, const Objective& objective, const DprsResult& best,
               const PlanSearch& search, const Trials& trials);

}  // namespace softneuro
