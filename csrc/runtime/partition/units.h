// What layers do together with other nodes or not at all.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/partition/op_graph.h"

namespace softneuro {

// Takes nodes away from the supported ones, with the reason, until nothing is cut that has to be whole:
// - what makes a value that stays inside, with all that read it;
// - where the host computes an op with its quantized operands and result as one (UnitRole), all of these.
// Says whether there were any.
bool leave_units(const OpGraph& graph, const OpLinks& links, std::vector<bool>& supported,
                 std::map<int, std::string>& host);
// Finds supported nodes that lie in different parts, though they have to be in one. `part`: by node, -1 for none.
std::vector<int> cut_nodes(const OpGraph& graph, const OpLinks& links, const std::vector<bool>& supported,
                           const std::vector<int>& part);

}  // namespace softneuro
