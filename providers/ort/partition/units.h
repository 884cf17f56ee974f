// What quantizes belongs to the op that it stands before or behind: the host computes them as one.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "providers/ort/graph/op_graph.h"

namespace softneuro::ort {

// Takes nodes away from the supported ones, with the reason, until the host has each such unit whole or not at all.
// Whether there were any.
bool leave_units(const OpGraph& graph, std::vector<bool>& supported, std::map<int, std::string>& host);

}  // namespace softneuro::ort
