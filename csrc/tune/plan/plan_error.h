// How far a plan's results are from those of exact routines, on a graph's own weights. What is known of one set of
// weights says nothing of another: a network may damp an error, or magnify it a thousandfold.
#pragma once

#include <optional>
#include <string>

#include "tune/measure/trial.h"
#include "tune/options.h"
#include "tune/tuner.h"

namespace softneuro {

// The share of max_error that a plan may err by on random inputs, as real ones may be worse.
inline constexpr double random_share = 0.5;

// Whether all routines only differ in the order of sums, and nothing is rounded to grids of the plan's.
bool is_exact(const Graph& graph, const Assignment& plan, int threads);

// Outputs on random inputs, before a host's narrower type rounds them: that two plans fall on different sides of a
// rounding says nothing of them.
Tensors outputs_of(const Graph& graph, const Assignment& plan, const Trials& trials);
// The largest of all outputs' errors, and at most 1000: beyond this all are alike, and prices stay finite.
double worst_error(const Tensors& results, const Tensors& expected);

// Errors are recorded under the graph's structure and its weights' content.
std::string error_signature(const Graph& graph);

// The error of a plan that was found for these weights or other ones: 0 for an exact one; nothing where nobody has
// measured it. Runs nothing.
std::optional<double> known_error(const Graph& graph, const TuneResult& plan, const TuneSettings& settings, CostDb& db);

// Whether a plan may err by so much. What a calibration foretells is of real inputs.
bool is_bearable(const TuneResult& plan, double error, const TuneSettings& settings);

// The plan, if its error on the graph's weights is known, or is found by two runs, and is bearable. Else a plan that is
// chosen anew: in mode `profile` with errors measured, in others, which measure nothing, of exact routines alone.
TuneResult bearable(const Graph& graph, TuneResult plan, const TuneSettings& settings, CostDb& db,
                    const ParallelFor& parallel_for);

}  // namespace softneuro
