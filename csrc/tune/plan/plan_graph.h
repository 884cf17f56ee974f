// Between a tuned graph and its plan's text form.
#pragma once

#include "tune/plan/plan.h"
#include "tune/tuner.h"

namespace softneuro {

PlanKey plan_key(const Graph& graph, int threads);
Plan to_plan(const Graph& graph, const TuneResult& result, int threads);
// Throws Error naming the layer if the plan does not fit the graph or names a routine that cannot run it here.
TuneResult from_plan(const Graph& graph, const Plan& plan);

// The plan of a file for a graph, or null. Throws Error if the file was made on another device or, if `strict`, if it
// has plans but none of this model (layer types agree).
const Plan* find_plan(const PlanFile& file, const Graph& graph, int threads, const std::string& path,
                      bool strict = true);
// The plan for the same model, device and threads whose input shapes differ least; null if there is none.
const Plan* nearest_plan(const PlanFile& file, const Graph& graph, int threads);
// By layer, as carry_over() takes them.
std::vector<std::string> descriptors(const Plan& plan);

}  // namespace softneuro
