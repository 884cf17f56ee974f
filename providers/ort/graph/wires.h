// How a graph's values go from node to node, for patterns of nodes that become one.
#pragma once

#include <set>
#include <string_view>
#include <vector>

#include "providers/ort/graph/host_graph.h"

namespace softneuro::ort {

class Wires {
 public:
  explicit Wires(const HostGraph& graph);

  const HostGraph& graph() const { return graph_; }
  const HostNode& node(int index) const { return graph_.nodes[at(index)]; }
  int producer_of(int value) const { return value < 0 ? -1 : producer_[at(value)]; }
  // The nodes that read a value; null if something else does, too.
  const std::vector<int>* readers_of(int value) const { return free_[at(value)] ? &readers_[at(value)] : nullptr; }
  // The nodes that read a node's first output, if nothing else does; else none.
  const std::vector<int>& readers(int index) const;
  // If it is one, else -1.
  int only_reader(int index) const { return readers(index).size() == 1 ? readers(index)[0] : -1; }
  // The operand that is not `value` of an op of ONNX's own with two, or -1.
  int other_operand(int index, std::string_view op, int value) const;
  // Whether one of them is the host's.
  bool is_taken(int last, const std::set<int>& inner) const;

 protected:
  static size_t at(int index) { return static_cast<size_t>(index); }

 private:
  const HostGraph& graph_;
  std::vector<int> producer_;
  std::vector<std::vector<int>> readers_;
  std::vector<bool> free_;  // neither an output of the graph nor read by a subgraph
};

// Makes the node an op of the runtime's own domain that stands for others, too.
void stand_for(HostGraph& graph, HostNode& node, std::string_view op, const std::set<int>& others);
void remove_nodes(HostGraph& graph, const std::set<int>& gone);

}  // namespace softneuro::ort
