#include "net/fused_layers.h"

#include "base/error.h"

namespace softneuro {

FusedLayers::FusedLayers(const Graph& graph, std::span<const RoutineChoice> choices)
    : graph_(graph), at_(graph.layers().size()), covered_(graph.layers().size()) {
  const auto& layers = graph.layers();
  bool any = false;
  for (size_t l = 0; l < layers.size(); ++l) {
    covered_[l] = choices[l].routine == nullptr && layers[l].type != "constant";
    any = any || covered_[l];
  }
  if (any) fusions_ = find_fusions(graph);
  std::vector<bool> done = covered_;
  for (size_t l = 0; l < layers.size(); ++l) {
    if (choices[l].routine == nullptr || choices[l].routine->info().layer_type == layers[l].type) continue;
    at_[l] = fusion_at(fusions_, static_cast<int>(l), choices[l].routine->info().layer_type, covered_);
    if (at_[l] == nullptr) {
      throw Error("the routine is not one of a " + layers[l].type + " layer, and no " +
                      choices[l].routine->info().layer_type + " ends here",
                  "layer '" + layers[l].name + "' (" + choices[l].descriptor() + ")");
    }
    for (const int inner : at_[l]->layers) done[static_cast<size_t>(inner)] = false;
  }
  for (size_t l = 0; l < layers.size(); ++l) {
    if (done[l]) throw Error("no routine was assigned", "layer '" + layers[l].name + "'");
  }
}

const Layer& FusedLayers::layer(int index) const {
  const Fusion* fusion = at_[static_cast<size_t>(index)];
  return fusion != nullptr ? fusion->layer : graph_.layers()[static_cast<size_t>(index)];
}

Problem FusedLayers::problem(int index, int threads) const {
  const Fusion* fusion = at_[static_cast<size_t>(index)];
  return fusion != nullptr ? fusion_problem(graph_, *fusion, threads) : graph_.problem(index, threads);
}

}  // namespace softneuro
