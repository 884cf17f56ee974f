// Integer convolutions of tensors that were quantized in the run, as quantizers spell them out:
//
//   q, scale, zero = DynamicQuantizeLinear(x)
//   y = Cast(ConvInteger(q, w, zero, w_zero)) * (scale * w_scale)
//
// Inside a region x takes the place of q, and 1 that of its scale, so that y is what it was. This holds if nothing else
// reads q, its scale, or the sums.
#pragma once

#include <vector>

#include "providers/ort/graph/host_graph.h"

namespace softneuro::ort {

// Indices of nodes.
struct DynamicSum {
  int quantize, sum, cast, factor, scaled;  // factor: -1 if q's scale is all of it

  bool has(int node) const { return node == sum || node == cast || node == factor || node == scaled; }
};

bool is_integer_sum(const HostNode& node);
std::vector<DynamicSum> find_dynamic_sums(const HostGraph& graph);

}  // namespace softneuro::ort
