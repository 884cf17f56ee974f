// Which nodes of the host's graph to take: the graph as the core's partition (csrc/runtime/partition) is told of it.
#pragma once

#include <map>
#include <string>

#include "providers/ort/graph/host_graph.h"
#include "runtime/partition/partition.h"

namespace softneuro::ort {

// Nodes that another provider has taken already are left alone. With min_region_size 1 even ops count that only move
// elements. Marks the graph's values that are `sized` and its nodes that are steps.
Partition find_regions(HostGraph& graph, int min_region_size);
// What is left of a part without the host's steps, in as many parts as that makes.
Partition without_steps(HostGraph& graph, const Partition::Part& part, int min_region_size);

// The nodes of a region that was taken once and could not be now, with the reason. Its marks are believed.
std::map<int, std::string> refused_nodes(const HostGraph& saved);

}  // namespace softneuro::ort
