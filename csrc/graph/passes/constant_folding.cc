// Layers that read only constants become constants, evaluated when somebody asks for the values; constant operands
// become weights.
#include <memory>
#include <utility>

#include "graph/passes/common.h"
#include "graph/passes/passes.h"
#include "layers/contract/registry.h"

namespace softneuro {
namespace {

// All layers of a graph that depend on constants only. Evaluated as a whole, so that what several of them share is
// computed once per request.
struct ConstantRegion {
  struct Node {
    Layer layer;
    Shape shape;
    std::vector<int> inputs;  // nodes
  };
  std::vector<Node> nodes;  // in topological order

  std::vector<float> evaluate(int target) const {
    std::vector<char> needed(nodes.size(), 0);
    needed[static_cast<size_t>(target)] = 1;
    std::vector<std::vector<double>> values(nodes.size());
    for (size_t n = static_cast<size_t>(target) + 1; n-- > 0;)
      if (needed[n])
        for (int input : nodes[n].inputs) needed[static_cast<size_t>(input)] = 1;
    for (size_t n = 0; n <= static_cast<size_t>(target); ++n) {
      if (!needed[n]) continue;
      std::vector<RefTensor> in;
      for (int input : nodes[n].inputs)
        in.push_back({nodes[static_cast<size_t>(input)].shape, values[static_cast<size_t>(input)].data()});
      values[n].resize(static_cast<size_t>(nodes[n].shape.elements()));
      const RefTensor out{nodes[n].shape, values[n].data()};
      run_reference(layer_def(nodes[n].layer.type), nodes[n].layer, in, {&out, 1});
    }
    const std::vector<double>& result = values[static_cast<size_t>(target)];
    return {result.begin(), result.end()};
  }
};

bool fold_regions(Graph& graph) {
  auto region = std::make_shared<ConstantRegion>();
  std::vector<int> node_of(graph.blobs().size(), -1);
  std::vector<int> folded;  // blobs
  for (const Layer& layer : graph.layers()) {
    // What a host computes may have a state of its own; what is not real keeps its exact type.
    const TensorDesc& desc = graph.blob(layer.output()).desc;
    if (layer.host != nullptr || layer.outputs.size() > 1 || desc.quantization != nullptr) continue;
    std::vector<int> inputs;
    for (int input : layer.inputs) {
      if (node_of[static_cast<size_t>(input)] < 0) break;
      inputs.push_back(node_of[static_cast<size_t>(input)]);
    }
    if (inputs.size() != layer.inputs.size()) continue;
    node_of[static_cast<size_t>(layer.output())] = static_cast<int>(region->nodes.size());
    region->nodes.push_back({layer, desc.shape, std::move(inputs)});
    if (layer.type != "constant" && desc.kind == ValueKind::real) folded.push_back(layer.output());
  }
  bool changed = false;
  for (int blob : folded) {
    bool wanted = graph.is_output(blob);
    for (int reader : graph.consumers(blob))
      wanted |= node_of[static_cast<size_t>(graph.layers()[static_cast<size_t>(reader)].output())] < 0;
    if (!wanted) continue;
    const int node = node_of[static_cast<size_t>(blob)];
    Layer constant;
    constant.name = graph.blob(blob).name;
    constant.type = "constant";
    constant.set_weight("value",
                        lazy_constant(graph.blob(blob).desc.shape, [region, node] { return region->evaluate(node); }));
    // Inserted layers are behind node_of's end, and only layers of before are asked about.
    const int replacement = graph.insert_layer(std::move(constant));
    node_of.push_back(node);
    graph.replace_uses(blob, replacement);
    changed = true;
  }
  return changed;
}

bool absorb_operand(const Graph& graph, Layer& layer) {
  if (layer.type != "binary" || layer.main_inputs() != 2) return false;
  for (int side : {1, 0}) {
    const Constant value = constant_of(graph, layer.inputs[static_cast<size_t>(side)]);
    if (value == nullptr) continue;
    layer.set_weight("other", value);
    layer.inputs.erase(layer.inputs.begin() + side);
    if (side == 0) layer.attrs.set("reversed", int64_t{1});
    return true;
  }
  return false;
}

Constant transposed(const Constant& matrix, int64_t rows, int64_t columns) {
  return lazy_constant({columns, rows}, [matrix, rows, columns] {
    const auto values = matrix->values();
    std::vector<float> result(static_cast<size_t>(rows * columns));
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c) result[static_cast<size_t>(c * rows + r)] = values.get()[r * columns + c];
    return result;
  });
}

bool to_linear(const Graph& graph, Layer& layer) {
  if (layer.type != "matmul" || layer.attrs.flag("transpose_a", false)) return false;
  const Constant b = constant_of(graph, layer.inputs[1]);
  if (b == nullptr || b->shape().rank() != 2) return false;
  const bool transpose_b = layer.attrs.flag("transpose_b", false);
  layer.set_weight("weight", transpose_b ? b : transposed(b, b->shape()[0], b->shape()[1]));
  layer.inputs.erase(layer.inputs.begin() + 1);
  layer.attrs = {};
  layer.type = "linear";
  return true;
}

}  // namespace

bool constant_folding(Graph& graph) {
  bool changed = fold_regions(graph);
  for (size_t l = 0; l < graph.layers().size(); ++l) {
    Layer& layer = graph.layer(static_cast<int>(l));
    changed |= absorb_operand(graph, layer) || to_linear(graph, layer);
  }
  return changed;
}

}  // namespace softneuro
