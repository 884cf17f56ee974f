// Layers that one routine may compute together. A fusion is a candidate, never a rewrite: the graph keeps its layers,
// and a plan takes the fusion or the layers' own routines.
//
// A fusion is one file in fusions/ and one line in fusions.inc; what computes it is a routine of its layer's type.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/grids.h"
#include "layers/contract/registry.h"

namespace softneuro {

struct Fusion {
  std::vector<int> layers;  // that it covers, ascending; nothing outside reads what they write but for the last
  Layer layer;              // that does their work: its inputs (a residual last) and its output are blobs of the graph

  // A form (forms.h) alone has these: its kind; which blobs are bytes, inputs first; what they are then.
  std::string kind = {};
  std::vector<bool> bytes = {};
  std::vector<TensorDesc> in = {};
  OutputDescs outs = {};
  bool is_form() const { return !kind.empty(); }
};

// All of a graph, overlapping ones included, in the order of their last layers: of several layers each, by the
// structure alone, and, with grids, the forms of single ones.
std::vector<Fusion> find_fusions(const Graph& graph, const Grids* grids);

Problem fusion_problem(const Graph& graph, const Fusion& fusion, int threads);

// The one that a choice computes which ends in a layer and covers exactly the layers before it that `covered` says of;
// null if there is none.
const Fusion* fusion_at(const std::vector<Fusion>& fusions, int last, const RoutineChoice& choice,
                        const std::vector<bool>& covered);

// What patterns share. Gives a fusion's layer the weights of one of its stages as `<role>_weight` and `<role>_bias`,
// and, but for the last stage, whose activation is the fusion's own, the activation as `<role>_function`, `<role>_a`,
// `<role>_b`.
void set_stage(Layer& fused, const std::string& role, const Layer& stage, bool last);
// Name, post-ops and blobs of a fusion's layer, from the first and the last of the layers that it covers.
void set_ends(const Graph& graph, Fusion& fusion);

}  // namespace softneuro
