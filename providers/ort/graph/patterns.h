// Ops that exporters and quantizers spell out, put together again.
#pragma once

#include "providers/ort/graph/host_graph.h"

namespace softneuro::ort {

// Replaces x * (1 + erf(x / sqrt(2))) / 2, in any of its usual orders, by one Gelu of the runtime's own domain, which
// stands for all its nodes: exporters wrote it out before opset 20, and no layer computes erf alone.
void merge_gelu(HostGraph& graph);
// Replaces what is made of an integer product of a tensor that was quantized in the run, and the product itself, by one
// MatMulIntegerToFloat of that domain.
void merge_integer_products(HostGraph& graph);

inline void merge_patterns(HostGraph& graph) { merge_gelu(graph), merge_integer_products(graph); }

}  // namespace softneuro::ort
