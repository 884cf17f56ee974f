// An op that the host runs in the midst of a region: a session of its own with this one node, which a net calls with
// the memory of its blobs.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "base/refusal.h"
#include "layers/host/host.h"
#include "providers/ort/graph/host_graph.h"

namespace softneuro::ort {

// Whether a node could be one, shapes aside: an op of ONNX's own whose results depend on nothing but its inputs, with
// tensors only of types that the core has.
Refusal may_be_step(const HostGraph& graph, const HostNode& node);

// What a step is given: a blob's shape, or a value that is known ahead.
struct StepInput {
  Shape shape;
  std::optional<HostTensor> known;
};

struct HostStep {
  HostOp op;
  std::vector<int> outputs;  // value ids, those that are `wanted`; the others are not computed
  std::string text;          // names the op with all that its results depend on
};

// Makes the step of one node with inputs of these shapes, by the node's; half precision is float32 inside. Throws Error
// if the host cannot run it, or if its outputs' shapes depend on more.
HostStep make_step(const HostGraph& graph, const HostNode& node, std::span<const StepInput> inputs,
                   const std::vector<bool>& wanted, int threads);
// Whether make_step() is going to work, as far as is known while shapes are open.
Refusal check_step(const HostGraph& graph, const HostNode& node);

}  // namespace softneuro::ort
