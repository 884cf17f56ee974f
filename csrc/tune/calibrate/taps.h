// A graph whose blobs of reals pass by a watcher, each as row-major floats, who may change what the graph goes on with.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "graph/graph.h"

namespace softneuro {

// Called in a run, on the thread that runs the net, with a blob of the graph and its memory: `out` is to be written.
using Watch = std::function<void(int blob, const TensorView& in, const TensorView& out)>;

struct Tapped {
  Graph graph;
  std::vector<int> layers;  // by layer of the graph that it was made of: its index here
  std::vector<bool> blobs;  // by blob of that graph: whether the watcher sees it
};

// Inputs are watched whatever their values, but not what a layer updates in place. With `natural`, inputs and outputs
// are row-major at the border, and outputs of reals are float32.
Tapped tap(const Graph& graph, const std::shared_ptr<const Watch>& watch, bool natural);

// Whether a plan may store a blob in bytes on a grid of its own.
bool is_open(const Graph& graph, int blob);

}  // namespace softneuro
