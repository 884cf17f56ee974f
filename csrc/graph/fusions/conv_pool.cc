// A convolution and the pooling of its output.
#include "graph/fusions.h"
#include "layers/conv2d/conv2d.h"

namespace softneuro::fusions {

void conv_pool(const Graph& graph, std::vector<Fusion>& fusions) {
  const auto& layers = graph.layers();
  for (int index = 0; index < static_cast<int>(layers.size()); ++index) {
    const Layer& pool = layers[static_cast<size_t>(index)];
    if (pool.type != "pool2d" || !pool.post.empty()) continue;
    const int before = graph.blob(pool.inputs[0]).producer;
    if (before < 0 || graph.consumers(pool.inputs[0]).size() != 1 || graph.is_output(pool.inputs[0])) continue;
    const Layer& conv = layers[static_cast<size_t>(before)];
    if (conv.type != "conv2d" || conv.post.residual) continue;
    Fusion& fusion = fusions.emplace_back();
    fusion.layers = {before, index};
    Layer& fused = fusion.layer;
    fused.type = "conv_pool";
    set_stage(fused, "conv", conv, false);
    for (const char* name : {"stride", "padding", "dilation", "groups"}) {
      if (const AttrValue* value = conv.attrs.find(name)) fused.attrs.set(name, *value);
    }
    for (const auto& [name, value] : pool.attrs.items()) fused.attrs.set("pool_" + name, value);
    set_ends(graph, fusion);
  }
}

}  // namespace softneuro::fusions
