// A tuned plan as Python holds it.
#pragma once

#include <string>

#include "graph/graph.h"
#include "tune/tuner.h"

namespace softneuro::bindings {

struct BoundPlan {
  std::string graph_hash;
  TuneSettings settings;
  TuneResult result;

  // Exactly the plan for the graph it was made for; carried over to the same model in other shapes otherwise.
  Assignment assignment_for(const Graph& graph, int threads) const;
};

}  // namespace softneuro::bindings
