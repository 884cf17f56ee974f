// What zeros in weights are worth: the best routines that make use of them beside the best that do not.
#pragma once

#include <functional>
#include <optional>

#include "tune/measure/costs.h"
#include "tune/search/objective.h"

namespace softneuro {

// Fills LayerReport::dense_s and sparse_s, and TuneResult::best_s and dense_s, of a result that is otherwise complete.
// `best` is the best plan by the objective, `solve` gives the best by another.
void note_sparse_gain(const Graph& graph, const GraphCosts& costs, const Objective& objective, const DprsResult& best,
                      const std::function<std::optional<DprsResult>(const Objective&)>& solve, TuneResult& result);

}  // namespace softneuro
