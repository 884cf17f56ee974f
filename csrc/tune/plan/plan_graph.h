// Between a tuned graph and its plan's text form.
#pragma once

#include "tune/plan/plan.h"
#include "tune/tuner.h"

namespace softneuro {

// `calibration`: that a plan under the settings depends on (calibration_key), or empty.
PlanKey plan_key(const Graph& graph, int threads, std::string calibration);
Plan to_plan(const Graph& graph, const TuneResult& result, const TuneSettings& settings);
// Throws Error naming the layer if the plan does not fit the graph or names a routine that cannot run it here.
TuneResult from_plan(const Graph& graph, const Plan& plan);

// Whether a plan has no grids, or was made for weights of just these values: grids are never another checkpoint's.
bool is_for_weights(const Plan& plan, const Graph& graph);

// What a plan depends on beside the graph: nothing without a calibration.
std::string calibration_key(const Graph& graph, const TuneSettings& settings);

// The plan of a file for a graph, or null. Throws Error if the file was made on another device or, if `strict`, if it
// has plans but none of this model (layer types agree).
// Without a calibration, the fastest plan within max_error that was made by one for just these weights comes first.
const Plan* find_plan(const PlanFile& file, const Graph& graph, const TuneSettings& settings, const std::string& path,
                      bool strict = true);
// The plan for the same model, device and threads whose input shapes differ least; null if there is none.
const Plan* nearest_plan(const PlanFile& file, const Graph& graph, int threads);
// By layer, as carry_over() takes them.
std::vector<std::string> descriptors(const Plan& plan);

}  // namespace softneuro
