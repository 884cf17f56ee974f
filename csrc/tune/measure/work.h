// Everything in a graph that needs a cost, each distinct thing once, and back to the graph.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tune/measure/costs.h"
#include "tune/search/childnets.h"

namespace softneuro {

struct Work {
  struct AdaptItem {
    TensorDesc desc;
    const Routine* routine;
    double seconds = 0;
    bool known = false;
  };
  std::vector<LayerCandidates> layers;  // fusions and the parts of childnets too
  std::vector<int> uses;                // by these: how many of the graph's layers they stand for
  std::vector<std::vector<size_t>>
      instead;                              // by these: what a fusion takes the place of; of others, forms too, nothing
  std::vector<size_t> of_layer, of_fusion;  // by the graph's layer and by GraphCosts::fusions: which of `layers`
  std::vector<AdaptItem> adapts;
  std::map<std::string, size_t> by_conversion;
};

// All of it guessed. Notes fusions and schemas in the costs.
Work collect(const Graph& graph, const TuneSettings& settings, GraphCosts& costs);
// Spreads the costs of distinct things over the graph.
void distribute(const Graph& graph, const Work& work, GraphCosts& costs);

}  // namespace softneuro
