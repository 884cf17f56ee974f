// Which ops of the host are to be steps of regions, so that an odd one does not cut a region in two.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/partition/op_graph.h"

namespace softneuro {

// Why the host cannot do a node inside a region, as far as it is known before there are shapes; empty if it can. Asked
// only of nodes that would be steps, as it may cost a session of the host.
using StepRefusal = std::function<std::string(int node)>;

// Finds steps by THE rule. They are ops that may be, and
// - each lies on a way from one region to another, both of `least` ops or more without it, and all on that way are in
//   regions or steps;
// - those that follow each other are no more than the ops of the largest region before them and of that after them.
std::vector<bool> find_steps(const OpGraph& graph, const OpLinks& links, const std::vector<bool>& supported, int least,
                             const StepRefusal& refusal);
// Finds moves of elements that steps alone feed and read. As parts of these they need no memory of the net's.
std::vector<bool> moves_between(const OpGraph& graph, const OpLinks& links, const std::vector<bool>& supported,
                                const std::vector<bool>& steps);
// Counts the ops that compute among these.
int count_ops(const OpGraph& graph, const std::vector<int>& nodes, const std::vector<bool>& supported);

}  // namespace softneuro
