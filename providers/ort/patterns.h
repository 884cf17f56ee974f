// Ops that older exporters spell out, put together again.
#pragma once

#include "providers/ort/op_graph.h"

namespace softneuro::ort {

// Replaces x * (1 + erf(x / sqrt(2))) / 2, in any of its usual orders, by one Gelu of the runtime's own domain, which
// stands for all its nodes: exporters wrote it out before opset 20, and no layer computes erf alone.
void merge_gelu(OpGraph& graph);

}  // namespace softneuro::ort
