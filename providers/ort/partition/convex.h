// Nodes of a graph in convex sets: regions that never wait for each other.
#pragma once

#include <vector>

#include "providers/ort/graph/op_graph.h"

namespace softneuro::ort {

// Parts of the supported nodes, each in topological order.
std::vector<std::vector<int>> convex_parts(const OpGraph& graph, const std::vector<bool>& supported);

}  // namespace softneuro::ort
