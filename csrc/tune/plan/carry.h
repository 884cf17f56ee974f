// A plan of other shapes of the same model, taken over without measuring.
#pragma once

#include <optional>

#include "tune/tuner.h"

namespace softneuro {

// Each layer keeps its routine, its params as near as the new shape offers them, and the conversions stay: for a graph
// that differs in shapes alone. Where a routine declines or errs by more than it did, carry_over() chooses anew.
TuneResult carry(const Graph& graph, const TuneResult& near, const TuneSettings& settings);

// The routine with those of a shape's params that are nearest; nothing if it is not to be had there.
std::optional<RoutineChoice> fitted(const Problem& problem, const RoutineChoice& wanted);

// How far a choice of the same routine is from the wanted one: 0 for the same params, well below 1 for others. Shapes
// differ in the params they offer; those that share the packed weights come first.
double params_distance(const Problem& problem, const RoutineChoice& wanted, const RoutineChoice& choice);

}  // namespace softneuro
