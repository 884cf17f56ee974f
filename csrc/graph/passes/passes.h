// The ordered list of graph passes, shared by all front doors. Each commits only to what always pays and what every
// routine of the layer accepts.
#pragma once

#include "graph/graph.h"

namespace softneuro {

// SN_PASS(name): `bool name(Graph&)` in graph/passes/<name>.cc; true if it changed the graph. Order is execution order.
#define SN_PASS(name) bool name(Graph& graph);
#include "graph/passes/passes.inc"
#undef SN_PASS

// Runs the list until nothing changes, then compacts.
void optimize(Graph& graph);

}  // namespace softneuro
