// Two convolutions, one of the other's output. Pairs overlap in a chain. Weights are not looked at, as fusions are a
// matter of structure: routines decline where both are dense.
#include "graph/fusions.h"

namespace softneuro::fusions {
namespace {

void add(const Graph& graph, int before, int index, std::vector<Fusion>& fusions) {
  Fusion& fusion = fusions.emplace_back();
  fusion.layers = {before, index};
  fusion.layer.type = "conv2d_pair";
  const auto add_stage = [&](const std::string& role, int of, bool last) {
    const Layer& stage = graph.layers()[static_cast<size_t>(of)];
    set_stage(fusion.layer, role, stage, last);
    for (const auto& [name, value] : stage.attrs.items()) fusion.layer.attrs.set(role + "_" + name, value);
  };
  add_stage("first", before, false);
  add_stage("second", index, true);
  set_ends(graph, fusion);
}

}  // namespace

void conv2d_pair(const Graph& graph, std::vector<Fusion>& fusions) {
  const auto& layers = graph.layers();
  for (int index = 0; index < static_cast<int>(layers.size()); ++index) {
    const Layer& conv = layers[static_cast<size_t>(index)];
    if (conv.type != "conv2d") continue;
    const int blob = conv.inputs[0], before = graph.blob(blob).producer;
    if (before < 0 || graph.consumers(blob).size() != 1 || graph.is_output(blob)) continue;
    if (conv.post.residual && conv.inputs.back() == blob) continue;
    const Layer& first = layers[static_cast<size_t>(before)];
    if (first.type != "conv2d" || first.post.residual || first.post.quantize != nullptr) continue;
    add(graph, before, index, fusions);
  }
}

}  // namespace softneuro::fusions
