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

  // The plan for the same model in other shapes or at other threads.
  BoundPlan carry_over(const Graph& graph, int threads) const;
  // Exactly the plan for the graph it was made for, carried over otherwise.
  Assignment assignment_for(const Graph& graph, int threads) const;
};

}  // namespace softneuro::bindings
