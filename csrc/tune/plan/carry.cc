#include "tune/plan/carry.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "net/fused_layers.h"
#include "tune/plan/planner.h"

namespace softneuro {
namespace {

bool still_leads(const Graph& graph, const Grids* grids, const AdaptChoice& adapt) {
  return adapt_routine(stored(graph, grids, adapt.blob, adapt.from, adapt.to), adapt.from, adapt.to) != nullptr;
}

// The same routines; nothing if one of them is not to be had for these shapes.
std::optional<Assignment> same_routines(const Graph& graph, const TuneResult& near, const TuneSettings& settings) {
  if (near.assignment.layers.size() != graph.layers().size()) return std::nullopt;
  Assignment assignment = near.assignment;
  const FusedLayers fused(graph, assignment.layers, assignment.grids.get());
  for (size_t l = 0; l < assignment.layers.size(); ++l) {
    RoutineChoice& choice = assignment.layers[l];
    if (choice.routine == nullptr) continue;
    const Problem problem = fused.problem(static_cast<int>(l), settings.threads);
    const auto found = fitted(problem, choice);
    // An error that has proven bearable in one shape is borne in others, and what is exact needs no proof.
    if (!found || found->routine->expected_error(problem, found->tuning) > settings.limits.max_error) {
      return std::nullopt;
    }
    choice = *found;
  }
  for (const AdaptChoice& adapt : assignment.adapts) {
    if (!still_leads(graph, assignment.grids.get(), adapt)) return std::nullopt;
  }
  add_needed_adapts(graph, assignment, settings.threads);
  return assignment;
}

}  // namespace

std::optional<RoutineChoice> fitted(const Problem& problem, const RoutineChoice& wanted) {
  const Routine& routine = *wanted.routine;
  if (!accepts(routine, problem).accepted()) return std::nullopt;
  std::optional<RoutineChoice> best;
  double least = 0;
  for (const Tuning& tuning : tunings(routine, problem)) {
    const RoutineChoice choice{&routine, tuning};
    const double distance = params_distance(problem, wanted, choice);
    if (!best || distance < least) best = choice, least = distance;
  }
  return best;
}

double params_distance(const Problem& problem, const RoutineChoice& wanted, const RoutineChoice& choice) {
  if (choice.tuning == wanted.tuning) return 0;
  double sum = 0;
  for (size_t i = 0; i < choice.tuning.size() && i < wanted.tuning.size(); ++i) {
    sum += std::fabs(std::log((std::abs(choice.tuning[i]) + 1.0) / (std::abs(wanted.tuning[i]) + 1.0)));
  }
  const Routine& routine = *wanted.routine;
  if (routine.pack_key(problem, choice.tuning) != routine.pack_key(problem, wanted.tuning)) sum += 100;
  return 1e-4 * (1 + std::min(sum, 1000.0));
}

TuneResult carry(const Graph& graph, const TuneResult& near, const TuneSettings& settings) {
  std::optional<Assignment> same;
  try {
    same = same_routines(graph, near, settings);
  } catch (const Error&) {  // params that mean nothing here
  }
  // Params may have come to be others, and the arena larger.
  if (same && misses(graph, *same, settings)) same.reset();
  if (!same) {
    TuneResult other = carry_over(graph, descriptors(near), settings);
    other.proven = near.proven;
    return other;
  }
  TuneResult result = near;
  result.assignment = std::move(*same);
  result.carried = true;
  result.exact = false;
  result.integrated_s = result.lower_bound_s = result.tuning_s = 0;
  result.measured = result.recalled = result.candidates = result.guessed = 0;
  result.adapt_seconds.resize(result.assignment.adapts.size(), 0);
  for (size_t l = 0; l < result.layers.size(); ++l) {
    const RoutineChoice& choice = result.assignment.layers[l];
    LayerReport& layer = result.layers[l];
    layer.descriptor = choice.routine != nullptr ? choice.descriptor() : "";
    layer.measured = false;
  }
  return result;
}

}  // namespace softneuro
