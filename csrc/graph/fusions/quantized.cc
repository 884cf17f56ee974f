// A layer and the quantization of its output, for routines that write bytes.
#include "graph/fusions.h"
#include "graph/passes/common.h"
#include "layers/contract/registry.h"

namespace softneuro::fusions {
namespace {

// Index of the layer that makes a blob for one reader alone; -1 if there is none.
int sole_producer(const Graph& graph, int blob, int reader) {
  const int producer = graph.blob(blob).producer;
  if (producer < 0 || sole_reader(graph, blob) != reader) return -1;
  return graph.layers()[static_cast<size_t>(producer)].outputs.size() == 1 ? producer : -1;
}

// A quantized convolution, what it is added to, and the quantization of the sum: one routine may do it all.
void with_addition(const Graph& graph, int addition, int last, std::vector<Fusion>& fusions) {
  const auto& layers = graph.layers();
  const Layer& add = layers[static_cast<size_t>(addition)];
  if (add.type != "binary" || add.inputs.size() != 2 || add.post.residual || add.attrs.text("function") != "add")
    return;
  for (size_t side = 0; side < 2; ++side) {
    const int blob = add.inputs[side], other = add.inputs[1 - side];
    if (blob == other || graph.blob(blob).desc.shape != graph.blob(other).desc.shape) continue;
    const int quantize = sole_producer(graph, blob, addition);
    if (quantize < 0 || layers[static_cast<size_t>(quantize)].type != "quantize") continue;
    const Layer& first = layers[static_cast<size_t>(quantize)];
    const int conv = sole_producer(graph, first.inputs[0], quantize);
    if (conv < 0 || layers[static_cast<size_t>(conv)].type != "conv2d") continue;
    if (!layers[static_cast<size_t>(conv)].post.empty()) continue;
    Fusion& fusion = fusions.emplace_back();
    fusion.layers = {conv, quantize, addition, last};
    fusion.layer = layers[static_cast<size_t>(conv)];
    fusion.layer.inputs.push_back(other);
    fusion.layer.outputs = layers[static_cast<size_t>(last)].outputs;
    fusion.layer.post = add.post;
    fusion.layer.post.residual = true;
    fusion.layer.post.quantize_first = first.post.quantize;
    fusion.layer.post.quantize = layers[static_cast<size_t>(last)].post.quantize;
  }
}

}  // namespace

void quantized(const Graph& graph, std::vector<Fusion>& fusions) {
  for (int index = 0; index < static_cast<int>(graph.layers().size()); ++index) {
    const Layer& quantize = graph.layers()[static_cast<size_t>(index)];
    if (quantize.type != "quantize") continue;
    const int before = sole_producer(graph, quantize.inputs[0], index);
    if (before < 0) continue;
    with_addition(graph, before, index, fusions);
    const Layer& first = graph.layers()[static_cast<size_t>(before)];
    if (first.post.quantize != nullptr || !may_write_bytes(first.type)) continue;
    Fusion& fusion = fusions.emplace_back();
    fusion.layers = {before, index};
    fusion.layer = first;
    fusion.layer.post.quantize = quantize.post.quantize;
    fusion.layer.outputs = quantize.outputs;
  }
}

}  // namespace softneuro::fusions
