// All layer types and all their routines, built once from layers.inc and the routines.inc lists.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "layers/contract/layer.h"
#include "layers/contract/problem_class.h"
#include "layers/contract/routine.h"

namespace softneuro {

std::span<const LayerDef* const> layer_defs();
// Throws Error naming the nearest known type.
const LayerDef& layer_def(std::string_view type);

// Routines of a type in list order, whatever their ISA; the naive one (layer/cpu:float32:nchw/naive, a fallback) last.
std::span<const std::unique_ptr<const Routine>> routines(std::string_view type);
// Whether any of the type's routines makes bytes of its results (PostOps::quantize).
bool may_write_bytes(std::string_view type);
// Whether its schemas can hold the problem's blobs and it accepts it: by the problem's class alone.
Refusal accepts(const Routine& routine, const Problem& problem);
// Its tunings for problems of this class.
std::vector<Tuning> tunings(const Routine& routine, const Problem& problem);
// Those that this machine (and SOFTNEURO_MAX_ISA) can run and that accept the problem. Fallbacks only if nothing else
// does. `refusals`, if given, receives (descriptor, reason) of the others.
std::vector<const Routine*> accepting_routines(const Problem& problem,
                                               std::vector<std::pair<std::string, std::string>>* refusals = nullptr);
std::vector<const Routine*> accepting_routines(const ProblemClass& problem,
                                               std::vector<std::pair<std::string, std::string>>* refusals = nullptr);

struct RoutineChoice {
  const Routine* routine = nullptr;
  Tuning tuning;
  std::string descriptor() const { return routine->descriptor(tuning); }
};
// From a descriptor's text. Throws Error if there is no such routine or its params do not parse.
RoutineChoice find_routine(std::string_view descriptor);

// The adapt routine from one schema to another for the machine, or null. It takes one step: the layout, the dtype or
// the platform changes.
const Routine* adapt_routine(const TensorDesc& desc, const Schema& from, const Schema& to);
// The schemas that a blob passes through from one to another, the last included, in the fewest steps; empty if there is
// no way.
std::vector<Schema> adapt_chain(const TensorDesc& desc, const Schema& from, const Schema& to);

}  // namespace softneuro
