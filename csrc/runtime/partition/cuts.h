// Which ops of the host stand between two regions.
#pragma once

#include <vector>

#include "runtime/partition/op_graph.h"

namespace softneuro {

// Two regions, by number, that would be one without these nodes.
struct Cut {
  int before = 0, after = 0;
  std::vector<int> nodes;
};

// Every two regions of which one feeds the other through nodes that no region has, or beside them: the second has to
// wait for such nodes, which may read what other regions give. `part`: by node, -1 for none. `kept`: whether the host
// keeps a node for its own sake. Where a node is between very many regions only the first few count: time is linear.
std::vector<Cut> find_cuts(const OpLinks& links, const std::vector<int>& part, const std::vector<bool>& kept);

}  // namespace softneuro
