// A convolution and the pooling of its output; with the image of bytes that it reads, too.
#include "graph/fusions.h"
#include "graph/fusions/scaled_image.h"

namespace softneuro::fusions {
namespace {

void add(const Graph& graph, int before, int index, const ScaledImage& image, std::vector<Fusion>& fusions) {
  const Layer &conv = graph.layers()[static_cast<size_t>(before)], &pool = graph.layers()[static_cast<size_t>(index)];
  Fusion& fusion = fusions.emplace_back();
  fusion.layers = image.layers;
  fusion.layers.insert(fusion.layers.end(), {before, index});
  Layer& fused = fusion.layer;
  fused.type = "conv_pool";
  fused.set_weight("values", image.values);
  set_stage(fused, "conv", conv, false);
  for (const char* name : {"stride", "padding", "dilation", "groups"}) {
    if (const AttrValue* value = conv.attrs.find(name)) fused.attrs.set(name, *value);
  }
  for (const auto& [name, value] : pool.attrs.items()) fused.attrs.set("pool_" + name, value);
  set_ends(graph, fusion);
}

}  // namespace

void conv_pool(const Graph& graph, std::vector<Fusion>& fusions) {
  const auto& layers = graph.layers();
  for (int index = 0; index < static_cast<int>(layers.size()); ++index) {
    const Layer& pool = layers[static_cast<size_t>(index)];
    if (pool.type != "pool2d" || !pool.post.empty()) continue;
    const int before = graph.blob(pool.inputs[0]).producer;
    if (before < 0 || graph.consumers(pool.inputs[0]).size() != 1 || graph.is_output(pool.inputs[0])) continue;
    const Layer& conv = layers[static_cast<size_t>(before)];
    if (conv.type != "conv2d" || conv.post.residual) continue;
    add(graph, before, index, {}, fusions);
    if (const auto image = scaled_image(graph, before)) add(graph, before, index, *image, fusions);
  }
}

}  // namespace softneuro::fusions
