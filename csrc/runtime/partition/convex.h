// Convex sets of a graph's nodes.
#pragma once

#include <vector>

#include "runtime/partition/op_graph.h"

namespace softneuro {

// Gives the taken nodes in convex sets, each in the order of the graph and of nodes that wait for each other; no two
// sets do.
//
// A node's depth is the largest number of gaps, of nodes that are not taken, on any path that leads to it: it grows by
// one whenever a path comes back to a taken node. Nodes of one depth form a convex set, whose connected parts these
// are. Time is linear in nodes and links.
std::vector<std::vector<int>> convex_parts(const OpGraph& graph, const OpLinks& links, const std::vector<bool>& taken);

}  // namespace softneuro
