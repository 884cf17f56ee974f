#include "runtime/partition/units.h"

#include <algorithm>

namespace softneuro {
namespace {

class Units {
 public:
  Units(const OpGraph& graph, const OpLinks& links, const std::vector<bool>& supported)
      : graph_(graph), links_(links), supported_(supported), readers_(links.readers), inside_(graph.nodes.size()) {
    // The host fuses nothing with what nobody reads.
    for (auto& readers : readers_) {
      std::erase_if(readers, [&](int reader) { return !links.is_read[slot(reader)]; });
    }
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      for (const int id : graph.nodes[n].outputs) inside_[n] = inside_[n] || (id >= 0 && stays_inside(id));
    }
  }

  // Why a supported node has to stay with the host; empty if it need not.
  std::string reason(size_t n) const {
    const OpNode& node = graph_.nodes[n];
    if (inside_[n]) {
      if (std::string leaves = leaves_reason(n); !leaves.empty()) return leaves;
    }
    if (node.takes_inside &&
        any(links_.sources[n], [&](int source) { return inside_[slot(source)] && host(source); })) {
      return "what quantizes its operand stays with the host";
    }
    return quantized_reason(n);
  }

 private:
  bool host(int n) const { return !supported_[slot(n)]; }
  bool host_with(int n, UnitRole role) const { return host(n) && graph_.nodes[slot(n)].role == role; }
  bool stays_inside(int value) const { return graph_.values[slot(value)].stays_inside; }

  template <typename Test>
  static bool any(const std::vector<int>& nodes, const Test& test) {
    return std::any_of(nodes.begin(), nodes.end(), test);
  }
  template <typename Test>
  static bool all(const std::vector<int>& nodes, const Test& test) {
    return std::all_of(nodes.begin(), nodes.end(), test);
  }

  // What outside a region reads a value that stays inside.
  std::string leaves_reason(size_t n) const {
    const std::vector<int>& made = graph_.nodes[n].outputs;
    const auto is_inside = [&](int id) { return id >= 0 && stays_inside(id); };
    if (any(made, [&](int id) { return is_inside(id) && graph_.values[slot(id)].is_output; })) {
      return "its bytes are a result";
    }
    for (const int reader : links_.readers[n]) {
      const OpNode& other = graph_.nodes[slot(reader)];
      const bool reads = any(
          other.inputs, [&](int id) { return is_inside(id) && std::find(made.begin(), made.end(), id) != made.end(); });
      if (reads && !other.takes_inside) return "its bytes are read by " + other.op;
      if (reads && host(reader)) return "what reads it stays with the host";
    }
    return {};
  }

  const char* quantized_reason(size_t n) const {
    const OpNode& node = graph_.nodes[n];
    const std::vector<int>&sources = links_.sources[n], &readers = readers_[n];
    const auto with = [this](UnitRole role) { return [this, role](int other) { return host_with(other, role); }; };
    if (node.role == UnitRole::dequantize) {
      const bool useless = !readers.empty() && all(readers, [&](int reader) { return host(reader); });
      return useless ? "what reads it stays with the host" : "";
    }
    if (node.role == UnitRole::quantize) {
      return any(sources, [&](int source) { return host(source); }) ? "what it quantizes stays with the host" : "";
    }
    if (any(sources, with(UnitRole::dequantize))) return "what dequantizes an operand stays with the host";
    if (!readers.empty() && all(readers, with(UnitRole::quantize)))
      return "what quantizes its result stays with the host";
    // The host computes it together with the op before it.
    const bool quantized = !readers.empty() && all(readers, [&](int reader) {
      return graph_.nodes[slot(reader)].role == UnitRole::quantize;
    });
    if (node.role != UnitRole::clamp || !quantized) return "";
    const bool unit = any(sources, [&](int source) {
      return host(source) && any(links_.sources[slot(source)],
                                 [&](int first) { return graph_.nodes[slot(first)].role == UnitRole::dequantize; });
    });
    return unit ? "the op before it stays with the host" : "";
  }

  const OpGraph& graph_;
  const OpLinks& links_;
  const std::vector<bool>& supported_;
  std::vector<std::vector<int>> readers_;
  std::vector<bool> inside_;  // by node: it makes a value that stays inside
};

}  // namespace

bool leave_units(const OpGraph& graph, const OpLinks& links, std::vector<bool>& supported,
                 std::map<int, std::string>& host) {
  const Units units(graph, links, supported);
  bool any = false;
  std::vector<int> open;
  const auto leave = [&](size_t n, std::string reason) {
    supported[n] = false;
    host[static_cast<int>(n)] = std::move(reason);
    any = true;
    for (const auto* near : {&links.sources[n], &links.readers[n]}) open.insert(open.end(), near->begin(), near->end());
  };
  for (size_t n = graph.nodes.size(); n-- > 0;) open.push_back(static_cast<int>(n));
  while (!open.empty()) {
    const auto n = slot(open.back());
    open.pop_back();
    if (!supported[n]) continue;
    std::string reason = units.reason(n);
    if (!reason.empty()) leave(n, std::move(reason));
  }
  return any;
}

std::vector<int> cut_nodes(const OpGraph& graph, const OpLinks& links, const std::vector<bool>& supported,
                           const std::vector<int>& part) {
  std::vector<int> cut;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    for (const int id : graph.nodes[n].outputs) {
      if (!supported[n] || id < 0 || !graph.values[slot(id)].stays_inside) continue;
      for (const int reader : links.readers[n]) {
        const std::vector<int>& read = graph.nodes[slot(reader)].inputs;
        if (part[slot(reader)] == part[n] || std::find(read.begin(), read.end(), id) == read.end()) continue;
        cut.push_back(static_cast<int>(n));
        cut.push_back(reader);
      }
    }
  }
  std::erase_if(cut, [&](int n) { return !supported[slot(n)]; });
  return cut;
}

}  // namespace softneuro
