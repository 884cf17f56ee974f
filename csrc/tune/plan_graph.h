// Between a tuned graph and its plan's text form.
#pragma once

#include "tune/plan.h"
#include "tune/tuner.h"

namespace softneuro {

PlanKey plan_key(const Graph& graph, int threads);
Plan to_plan(const Graph& graph, const TuneResult& result, int threads);
// Throws Error naming the layer if the plan does not fit the graph or names a routine that cannot run it here.
TuneResult from_plan(const Graph& graph, const Plan& plan);

// The plan of a file for a graph, or null if the file has others of the same model (layer types agree) only. Throws
// Error if the file holds none of this model, or was made on another device or for other threads.
const Plan* find_plan(const PlanFile& file, const Graph& graph, int threads, const std::string& path);

}  // namespace softneuro
