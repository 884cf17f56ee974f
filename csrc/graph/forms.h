// Layers of reals on blobs that a plan stores in bytes: what they are then. A form is a candidate like a fusion of one
// layer alone; the layer itself, on floats, is the other.
#pragma once

#include <vector>

#include "graph/fusions.h"
#include "graph/grids.h"

namespace softneuro {

// All forms of a graph's layers that any routine could compute: each of those blobs in bytes that some routine has so.
std::vector<Fusion> find_forms(const Graph& graph, const Grids& grids);
// Whether a routine has just those blobs in bytes that a form has.
bool computes_form(const Routine& routine, const Fusion& form);
// Whether a routine has any blob in bytes whose grid is the plan's.
bool wants_form(const Graph& graph, const Grids& grids, int layer, const Routine& routine);

}  // namespace softneuro
