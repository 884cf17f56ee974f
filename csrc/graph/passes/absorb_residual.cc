// The sum of two blobs, one of which comes from a layer that can add the other while it writes its result.
#include "graph/passes/common.h"
#include "graph/passes/passes.h"

namespace softneuro {
namespace {

// How well a blob's producer would do as the one that adds: higher is better, -1 not at all.
int fitness(const Graph& graph, int blob, int sum) {
  const Layer* producer = producer_of(graph, blob);
  if (producer == nullptr || !accepts_residual(producer->type) || !producer->post.empty()) return -1;
  if (sole_reader(graph, blob) != sum) return -1;
  // An element-wise layer gains less than one that has arithmetic to hide the reading; of two, the later one has to
  // wait for the other anyway.
  const int layers = static_cast<int>(graph.layers().size());
  return graph.blob(blob).producer + (producer->type == "binary" ? 0 : layers);
}

}  // namespace

bool absorb_residual(Graph& graph) {
  bool changed = false;
  for (size_t l = 0; l < graph.layers().size(); ++l) {
    const Layer& layer = graph.layers()[l];
    const int sum = static_cast<int>(l);
    if (layer.type != "binary" || layer.inputs.size() != 2 || layer.post.residual) continue;
    // Either may be quantized: they are reals all the same.
    const bool alike = graph.blob(layer.inputs[0]).desc.shape == graph.blob(layer.inputs[1]).desc.shape;
    if (layer.attrs.text("function") != "add" || !alike) continue;
    const int first = fitness(graph, layer.inputs[0], sum), second = fitness(graph, layer.inputs[1], sum);
    if (first < 0 && second < 0) continue;
    const int blob = layer.inputs[first > second ? 0 : 1], other = layer.inputs[first > second ? 1 : 0];
    Layer& producer = graph.layer(graph.blob(blob).producer);
    producer.inputs.push_back(other);
    producer.post = {true, layer.post.activation};
    retire(graph, sum, blob);
    changed = true;
  }
  return changed;
}

}  // namespace softneuro
