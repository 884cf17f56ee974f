// Which nodes of a graph to take, in convex regions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "providers/ort/graph/op_graph.h"

namespace softneuro::ort {

struct Partition {
  struct Part {
    std::vector<int> nodes;  // in topological order
    int ops = 0;             // that count towards min_region_size
    bool has_steps = false;  // some of the nodes are the host's
  };
  std::vector<Part> parts;
  std::map<int, std::string> host;  // by node: why it stays
};

// Nodes that another provider has taken already are left alone. With min_region_size 1 even ops count that only move
// elements. Marks the graph's values that are `sized` and its nodes that are steps.
Partition find_parts(OpGraph& graph, int min_region_size);
// What is left of a part without the host's steps, in as many parts as that makes.
Partition without_steps(OpGraph& graph, const Partition::Part& part, int min_region_size);

// The nodes of a region that was taken once and could not be now, with the reason. Its marks are believed.
std::map<int, std::string> refused_nodes(const OpGraph& saved);

}  // namespace softneuro::ort
