#include "providers/ort/graph/wires.h"

#include <algorithm>

namespace softneuro::ort {

Wires::Wires(const HostGraph& graph)
    : graph_(graph),
      producer_(graph.values.size(), -1),
      readers_(graph.values.size()),
      free_(graph.values.size(), true) {
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const HostNode& node = graph.nodes[n];
    const auto index = static_cast<int>(n);
    for (const int id : node.outputs) {
      if (id >= 0) producer_[at(id)] = index;
    }
    for (const int id : node.inputs) {
      if (id >= 0) readers_[at(id)].push_back(index);
    }
    for (const int id : node.implicit_inputs) {
      if (id >= 0) free_[at(id)] = false;
    }
  }
  for (const int id : graph.outputs) free_[at(id)] = false;
}

const std::vector<int>& Wires::readers(int index) const {
  static const std::vector<int> none;
  const int id = node(index).outputs[0];
  const std::vector<int>* found = id < 0 ? nullptr : readers_of(id);
  return found == nullptr ? none : *found;
}

int Wires::other_operand(int index, std::string_view op, int value) const {
  const HostNode& found = node(index);
  if (found.op != op || !found.domain.empty() || found.inputs.size() != 2) return -1;
  return found.inputs[0] == value ? found.inputs[1] : found.inputs[1] == value ? found.inputs[0] : -1;
}

bool Wires::is_taken(int last, const std::set<int>& inner) const {
  const auto taken = [&](int index) { return !node(index).not_ours.empty(); };
  return taken(last) || std::any_of(inner.begin(), inner.end(), taken);
}

void stand_for(HostGraph& graph, HostNode& node, std::string_view op, const std::set<int>& others) {
  for (const int index : others) node.merged.push_back(graph.nodes[static_cast<size_t>(index)].host);
  node.op = op, node.domain = "com.microsoft", node.since_version = 1;
  node.attributes.clear();
  graph.opsets.emplace(node.domain, 1);
}

void remove_nodes(HostGraph& graph, const std::set<int>& gone) {
  std::vector<HostNode> kept;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (!gone.contains(static_cast<int>(n))) kept.push_back(std::move(graph.nodes[n]));
  }
  graph.nodes = std::move(kept);
}

}  // namespace softneuro::ort
