// Layers that one routine may compute together. A fusion is a candidate, never a rewrite: the graph keeps its layers,
// and a plan takes the fusion or the layers' own routines.
//
// A fusion is one file in fusions/ and one line in fusions.inc; what computes it is a routine of its layer's type.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace softneuro {

struct Fusion {
  std::vector<int> layers;  // that it covers, ascending; nothing outside reads what they write but for the last
  Layer layer;              // that does their work: its inputs (a residual last) and its output are blobs of the graph
};

// All of a graph, overlapping ones included, in the order of their last layers. Depends on the structure alone.
std::vector<Fusion> find_fusions(const Graph& graph);

Problem fusion_problem(const Graph& graph, const Fusion& fusion, int threads);

// The one of this type that ends in a layer and covers exactly the layers before it that `covered` says of; null if
// there is none.
const Fusion* fusion_at(const std::vector<Fusion>& fusions, int last, std::string_view type,
                        const std::vector<bool>& covered);

}  // namespace softneuro
