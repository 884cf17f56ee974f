// An activation behind a layer that can apply it while its results are still in registers.
#include "graph/passes/common.h"
#include "graph/passes/passes.h"
#include "layers/activation/activation.h"

namespace softneuro {

bool absorb_activation(Graph& graph) {
  bool changed = false;
  for (size_t l = 0; l < graph.layers().size(); ++l) {
    const Layer& layer = graph.layers()[l];
    if (layer.type != "activation" || !layer.post.empty()) continue;
    const int blob = layer.inputs[0];
    const Layer* producer = producer_of(graph, blob);
    if (producer == nullptr || !accepts_activation(producer->type) ||
        producer->post.activation.kind != ActivationKind::none || sole_reader(graph, blob) != static_cast<int>(l))
      continue;
    graph.layer(graph.blob(blob).producer).post.activation = activation_params(layer);
    retire(graph, static_cast<int>(l), blob);
    changed = true;
  }
  return changed;
}

}  // namespace softneuro
