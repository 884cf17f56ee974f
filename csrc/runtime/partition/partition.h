// Which ops of a host's graph run as regions: the same for every door.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "runtime/partition/cuts.h"
#include "runtime/partition/op_graph.h"
#include "runtime/partition/steps.h"

namespace softneuro {

struct Partition {
  struct Part {
    std::vector<int> nodes;  // in topological order
    int ops = 0;             // that compute, steps left out
    // Nodes that the host does inside the region, those that follow each other together.
    std::vector<std::vector<int>> steps;
  };
  std::vector<Part> parts;
  std::map<int, std::string> host;          // by node that no part has: why the host keeps it
  std::map<int, std::string> step_reasons;  // by step of a part
  std::vector<Cut> cuts;
};

struct PartitionRules {
  int min_region_size = 1;  // ops that compute
  bool join = true;         // whether ops of the host may be steps
  bool cuts = false;        // whether Partition::cuts is wanted
  StepRefusal step_refusal = {};
  // The nodes of a part that a region cannot have once all its others are known, with the reason.
  std::function<std::map<int, std::string>(const std::vector<int>& nodes)> misfits = {};
};

// Finds convex regions, as large as can be, each of min_region_size ops or more; none waits for another that waits for
// it. Linear in the graph, but for steps that have to be taken back.
Partition find_parts(const OpGraph& graph, const PartitionRules& rules);

}  // namespace softneuro
