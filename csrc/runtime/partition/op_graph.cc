#include "runtime/partition/op_graph.h"

#include "base/error.h"

namespace softneuro {
namespace {

void check(const OpGraph& graph, const OpNode& node, size_t n) {
  const auto text = [&] { return "node " + std::to_string(n); };
  for (const auto* list : {&node.inputs, &node.outputs}) {
    for (const int id : *list) {
      if (id < -1 || id >= static_cast<int>(graph.values.size())) throw Error("it has no such value", text());
    }
  }
  for (const int other : node.after) {
    if (other < 0 || other >= static_cast<int>(n)) throw Error("it waits for a node that comes later", text());
  }
}

}  // namespace

OpLinks links_of(const OpGraph& graph) {
  const size_t count = graph.nodes.size();
  const std::vector<std::vector<int>> none(count);
  OpLinks links{none, none, none, none, std::vector<bool>(count, false)};
  std::vector<int> producer(graph.values.size(), -1);
  std::vector<bool> is_known(graph.values.size(), false);  // made, or read
  for (size_t n = 0; n < count; ++n) {
    const OpNode& node = graph.nodes[n];
    check(graph, node, n);
    links.after[n] = node.after;
    for (const int other : node.after) links.later[slot(other)].push_back(static_cast<int>(n));
    for (const int id : node.inputs) {
      if (id >= 0) is_known[slot(id)] = true;
      if (id < 0 || producer[slot(id)] < 0) continue;
      links.sources[n].push_back(producer[slot(id)]);
      links.readers[slot(producer[slot(id)])].push_back(static_cast<int>(n));
    }
    for (const int id : node.outputs) {
      if (id < 0) continue;
      if (is_known[slot(id)]) throw Error("it makes a value that is made or read before", "node " + std::to_string(n));
      is_known[slot(id)] = true;
      producer[slot(id)] = static_cast<int>(n);
    }
  }
  for (size_t n = count; n-- > 0;) {
    links.is_read[n] = links.is_read[n] || graph.nodes[n].has_effect;
    for (const int id : graph.nodes[n].outputs) {
      links.is_read[n] = links.is_read[n] || (id >= 0 && graph.values[slot(id)].is_output);
    }
    for (const int reader : links.readers[n]) links.is_read[n] = links.is_read[n] || links.is_read[slot(reader)];
    for (const int other : links.after[n]) links.is_read[slot(other)] = true;
  }
  return links;
}

}  // namespace softneuro
