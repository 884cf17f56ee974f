// Integrated profiling: what routines take in the running net, which their times alone do not tell. Blobs that leave
// the caches between producer and consumer, threads that share the memory's bandwidth, and neighbours' weights count
// there.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "tune/costs.h"
#include "tune/objective.h"
#include "tune/trial.h"

namespace softneuro {

struct PlanSearch {
  // The best plan, or nothing if none has the memory it needs.
  std::function<std::optional<DprsResult>(const Objective&)> solve;
  // Whether it may become the net's, or is only good for learning what its routines take.
  std::function<bool(const DprsResult&)> acceptable;
};

// Plans worth timing as wholes, besides `best`, the best by `objective`. Runs that one step by step in its net,
// corrects the costs of the routines in it, and solves again, a few times: routines that have not been in a net keep
// their own times, so that each layer's next best get their turn, fusions at first with a fifth of these taken off. At
// last they are made as much worse as the layer's measured ones turned out, which leaves the best of what was seen.
// Times come from the database where it knows them, and are measured only if the mode allows it.
std::vector<DprsResult> refine(const Graph& graph, const GraphCosts& costs, const Objective& objective,
                               const DprsResult& best, const PlanSearch& search, const Trials& trials);

}  // namespace softneuro
