// Ops that exporters and quantizers spell out, put together again.
#pragma once

#include "providers/ort/graph/host_graph.h"

namespace softneuro::ort {

// Replaces what is made of an integer product of a tensor that was quantized in the run, and the product itself, by one
// MatMulIntegerToFloat of the runtime's own domain.
void merge_integer_products(HostGraph& graph);

}  // namespace softneuro::ort
