// What tensors of eight bits mean: the scale and zero point that the ops around them tell.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/refusal.h"
#include "providers/ort/graph/host_graph.h"

namespace softneuro::ort {

// Places among a node's inputs.
struct QuantizedInput {
  size_t value, scale, zero_point;
};
struct QuantizedOutput {
  size_t scale, zero_point;
};
// What ops quantize or dequantize; nothing for others.
std::vector<QuantizedInput> quantized_inputs(const HostNode& node);
std::optional<QuantizedOutput> quantized_output(const HostNode& node);

bool is_quantize(const HostNode& node);
bool is_dequantize(const HostNode& node);
// Whether all zero points, of which there is at least one, are the same.
bool is_one(const std::vector<int64_t>& zero_points);
// Whose scale follows from the values; and what makes reals of products of its bytes.
bool is_dynamic_quantize(const HostNode& node);
bool is_dynamic_product(const HostNode& node);
// Sums of whole numbers, which are reals inside a region.
bool is_integer_sum(const HostNode& node);
// Whether the model quantizes anything on its way.
bool is_quantized(const HostGraph& graph);
// By output of the graph: whether the model rounds to steps on the way to it, or the host may, which computes an op
// together with what dequantizes its operands.
std::vector<bool> outputs_in_steps(const HostGraph& graph);
// Whether the node makes a weight of a constant.
bool dequantizes_constant(const HostGraph& graph, const HostNode& node);

// Finds HostValue::grid of every value: that of the op that makes it, or that which all its readers name. Ops that move
// elements pass it on.
void find_grids(HostGraph& graph);

// Why a node's scales and zero points, if it has any, are not what layers take.
Refusal check_parameters(const HostGraph& graph, const HostNode& node);

// Inside, bytes are unsigned: those of a signed tensor are 128 more.
std::shared_ptr<const Quantization> unsigned_grid(const std::shared_ptr<const Quantization>& grid);

}  // namespace softneuro::ort
