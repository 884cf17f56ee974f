// Concatenations in the form that memory planning does best with: nested ones made flat, and of two that begin alike
// the longer one continues the shorter, so that a dense block grows one buffer instead of copying all it has at every
// layer.
#include <algorithm>

#include "graph/passes/common.h"
#include "graph/passes/passes.h"

namespace softneuro {
namespace {

bool is_concat(const Layer& layer) { return layer.type == "concat" && layer.post.empty(); }

bool same_axis(const Layer& a, const Layer& b) { return a.attrs.integer("axis") == b.attrs.integer("axis"); }

// Parts that nobody else reads are taken into the whole.
bool flatten(Graph& graph, int index) {
  const Layer& layer = graph.layers()[static_cast<size_t>(index)];
  for (size_t k = 0; k < layer.inputs.size(); ++k) {
    const int part = layer.inputs[k];
    const Layer* inner = producer_of(graph, part);
    if (inner == nullptr || !is_concat(*inner) || !same_axis(*inner, layer) || sole_reader(graph, part) != index)
      continue;
    std::vector<int>& inputs = graph.layer(index).inputs;
    inputs.erase(inputs.begin() + static_cast<std::ptrdiff_t>(k));
    inputs.insert(inputs.begin() + static_cast<std::ptrdiff_t>(k), inner->inputs.begin(), inner->inputs.end());
    retire(graph, graph.blob(part).producer, part);
    return true;
  }
  return false;
}

// The earlier concatenation with the longest list of inputs that this one begins with.
bool continue_longest(Graph& graph, int index) {
  const Layer& layer = graph.layers()[static_cast<size_t>(index)];
  const Layer* best = nullptr;
  for (int l = 0; l < index; ++l) {
    const Layer& other = graph.layers()[static_cast<size_t>(l)];
    if (!is_concat(other) || !same_axis(other, layer) || other.inputs.size() < 2) continue;
    if (other.inputs.size() > layer.inputs.size() || (best && other.inputs.size() <= best->inputs.size())) continue;
    if (std::equal(other.inputs.begin(), other.inputs.end(), layer.inputs.begin())) best = &other;
  }
  if (best == nullptr) return false;
  std::vector<int>& inputs = graph.layer(index).inputs;
  inputs.erase(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(best->inputs.size()));
  inputs.insert(inputs.begin(), best->output());
  return true;
}

}  // namespace

bool concat_cleanup(Graph& graph) {
  bool changed = false;
  for (size_t l = 0; l < graph.layers().size(); ++l) {
    const int index = static_cast<int>(l);
    if (!is_concat(graph.layers()[l])) continue;
    while (flatten(graph, index)) changed = true;
    changed |= continue_longest(graph, index);
    if (graph.layers()[l].inputs.size() == 1) {
      retire(graph, index, graph.layers()[l].inputs[0]);
      changed = true;
    }
  }
  return changed;
}

}  // namespace softneuro
