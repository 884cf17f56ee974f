// What an op's layers say of it before it is claimed, where its shapes are fixed.
#pragma once

#include <vector>

#include "base/refusal.h"
#include "providers/ort/graph/host_graph.h"

namespace softneuro::ort {

// Converts the last of the nodes alone, with those before it, which dequantize its weights. Accepts what cannot be
// tried, since some size of it is open. Inputs that are no constants flow.
Refusal try_layers(const HostGraph& graph, const std::vector<const HostNode*>& nodes);

}  // namespace softneuro::ort
