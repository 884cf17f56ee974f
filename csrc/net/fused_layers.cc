#include "net/fused_layers.h"

#include "base/error.h"
#include "graph/forms.h"

namespace softneuro {

FusedLayers::FusedLayers(const Graph& graph, std::span<const RoutineChoice> choices, const Grids* grids)
    : graph_(graph), at_(graph.layers().size()), covered_(graph.layers().size()) {
  const auto& layers = graph.layers();
  bool any = false;
  for (size_t l = 0; l < layers.size(); ++l) {
    covered_[l] = choices[l].routine == nullptr && layers[l].type != "constant";
    any = any || covered_[l];
  }
  if (any) fusions_ = find_fusions(graph, nullptr);
  std::vector<bool> done = covered_;
  for (size_t l = 0; l < layers.size(); ++l) {
    const Routine* routine = choices[l].routine;
    if (routine == nullptr) continue;
    const auto index = static_cast<int>(l);
    const bool same_type = routine->info().layer_type == layers[l].type;
    const bool form = grids != nullptr && wants_form(graph, *grids, index, *routine);
    if (same_type && !form) continue;
    at_[l] = fusion_at(fusions_, index, choices[l], covered_);
    if (at_[l] == nullptr && grids != nullptr) {
      auto found = std::make_unique<const Fusion>(find_form(graph, *grids, index, choices[l]));
      if (!found->layers.empty()) at_[l] = forms_.emplace_back(std::move(found)).get();
    }
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
