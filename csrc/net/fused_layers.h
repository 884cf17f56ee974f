// Which layers of an assignment are computed together. A fused routine stands at its fusion's last layer, the others
// that it covers have none.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "graph/fusions.h"
#include "layers/contract/registry.h"

namespace softneuro {

class FusedLayers {
 public:
  // Throws Error naming the layer if one that is no constant is neither assigned nor covered, or if a routine is of
  // another type than the layer and no fusion of its type ends there. `grids`: the plan's, or null.
  FusedLayers(const Graph& graph, std::span<const RoutineChoice> choices, const Grids* grids);

  bool covered(int layer) const { return covered_[static_cast<size_t>(layer)]; }
  // What a layer's routine computes: the layer itself or a fusion.
  const Layer& layer(int index) const;
  Problem problem(int index, int threads) const;

 private:
  const Graph& graph_;
  std::vector<Fusion> fusions_;
  std::vector<std::unique_ptr<const Fusion>> forms_;
  std::vector<const Fusion*> at_;  // by layer, null where it is computed alone
  std::vector<bool> covered_;
};

}  // namespace softneuro
