// A form is what a layer of reals may be where a plan may round. It is a candidate like a fusion of one layer alone,
// and the layer itself, on floats, is another.
//
//   bytes    its blobs, or some of them, in bytes on the plan's grids, and its weights in bytes
//   dynamic  a product of bytes, to which its input is brought by scales that follow from its values, row by row
//   blocks8  a product of floats with weights of eight bits, of which 32 along a row share a scale
//   blocks4  the same with four bits
#pragma once

#include <vector>

#include "graph/fusions.h"
#include "graph/grids.h"

namespace softneuro {

// All forms of a graph's layers that some routine may compute.
std::vector<Fusion> find_forms(const Graph& graph, const Grids& grids);
// The form of a layer that a choice computes; without layers if there is none. Others' weights are not touched.
Fusion find_form(const Graph& graph, const Grids& grids, int layer, const RoutineChoice& choice);
// Whether a choice is one for a form: it has just those blobs in bytes, or as many bits.
bool computes_form(const RoutineChoice& choice, const Fusion& form);
// Whether a routine of the layer's own type has any blob in bytes whose grid is the plan's.
bool wants_form(const Graph& graph, const Grids& grids, int layer, const Routine& routine);

}  // namespace softneuro
