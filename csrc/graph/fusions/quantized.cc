// A layer and the quantization of its output, for routines that write bytes.
#include "graph/fusions.h"
#include "graph/passes/common.h"
#include "layers/registry.h"

namespace softneuro::fusions {

void quantized(const Graph& graph, std::vector<Fusion>& fusions) {
  for (int index = 0; index < static_cast<int>(graph.layers().size()); ++index) {
    const Layer& quantize = graph.layers()[static_cast<size_t>(index)];
    if (quantize.type != "quantize") continue;
    const int blob = quantize.inputs[0], before = graph.blob(blob).producer;
    if (before < 0 || sole_reader(graph, blob) != index) continue;
    const Layer& first = graph.layers()[static_cast<size_t>(before)];
    if (first.outputs.size() > 1 || first.post.quantize != nullptr || !may_write_bytes(first.type)) continue;
    Fusion& fusion = fusions.emplace_back();
    fusion.layers = {before, index};
    fusion.layer = first;
    fusion.layer.post.quantize = quantize.post.quantize;
    fusion.layer.outputs = quantize.outputs;
  }
}

}  // namespace softneuro::fusions
