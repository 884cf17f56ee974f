// Layers that broadcast their operands themselves read a repeated blob as it was before: nothing has to be written for
// them.
#include <algorithm>

#include "graph/passes/common.h"
#include "graph/passes/passes.h"
#include "layers/shared/broadcast.h"

namespace softneuro {
namespace {

bool broadcasts(const Layer& layer) {
  static constexpr std::string_view types[] = {"binary", "where", "compare", "logical", "integer_binary"};
  return layer.inputs.size() > 1 && !layer.post.residual &&
         std::find(std::begin(types), std::end(types), layer.type) != std::end(types);
}

// The shape that operands have together where one of them is another.
Shape shape_with(const Graph& graph, const Layer& layer, size_t operand, const Shape& other) {
  Shape shape = other;
  for (size_t i = 0; i < layer.inputs.size(); ++i) {
    if (i != operand) shape = broadcast_shape(shape, graph.blob(layer.inputs[i]).desc.shape);
  }
  return shape;
}

}  // namespace

bool expand_into_readers(Graph& graph) {
  bool changed = false;
  for (size_t l = 0; l < graph.layers().size(); ++l) {
    Layer& layer = graph.layer(static_cast<int>(l));
    if (!broadcasts(layer)) continue;
    const Shape out = graph.blob(layer.output()).desc.shape;
    for (size_t i = 0; i < layer.inputs.size(); ++i) {
      const Layer* expand = producer_of(graph, layer.inputs[i]);
      if (expand == nullptr || expand->type != "expand" || !expand->post.empty()) continue;
      const int source = expand->inputs[0];
      if (shape_with(graph, layer, i, graph.blob(source).desc.shape) != out) continue;
      layer.inputs[i] = source;
      changed = true;
    }
  }
  return changed;
}

}  // namespace softneuro
