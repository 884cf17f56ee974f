// A tuned plan as Python holds it.
#pragma once

#include <pybind11/pybind11.h>

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

// arena_bytes, blob_bytes, packed_bytes, own_bytes, border_bytes, peak_bytes, steps.
inline pybind11::dict stats_dict(const NetStats& stats) {
  pybind11::dict found;
  found["arena_bytes"] = stats.arena_bytes;
  found["blob_bytes"] = stats.blob_bytes;
  found["packed_bytes"] = stats.packed_bytes;
  found["own_bytes"] = stats.own_bytes;
  found["border_bytes"] = stats.border_bytes;
  found["peak_bytes"] = stats.peak_bytes();
  found["steps"] = stats.steps;
  return found;
}

}  // namespace softneuro::bindings
