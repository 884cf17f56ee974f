#include "providers/ort/units.h"

#include <algorithm>

#include "providers/ort/quantized_values.h"

namespace softneuro::ort {
namespace {

class Units {
  static size_t at(int index) { return static_cast<size_t>(index); }
  // Nodes that stay with the host, of a kind.
  auto hosts(bool (*kind)(const OpNode&) = nullptr) const {
    return [this, kind](int n, const OpNode& node) { return !supported_[at(n)] && (kind == nullptr || kind(node)); };
  }
  template <typename Test>
  bool any(const std::vector<int>& nodes, const Test& test) const {
    return std::any_of(nodes.begin(), nodes.end(), [&](int n) { return test(n, graph_.nodes[at(n)]); });
  }
  template <typename Test>
  bool all(const std::vector<int>& nodes, const Test& test) const {
    return std::all_of(nodes.begin(), nodes.end(), [&](int n) { return test(n, graph_.nodes[at(n)]); });
  }

 public:
  Units(const OpGraph& graph, const std::vector<bool>& supported)
      : graph_(graph), supported_(supported), sources_(graph.nodes.size()), readers_(graph.nodes.size()) {
    std::vector<int> producer(graph.values.size(), -1);
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      const OpNode& node = graph.nodes[n];
      for (const auto* list : {&node.inputs, &node.implicit_inputs}) {
        for (const int id : *list) {
          if (id < 0 || producer[at(id)] < 0) continue;
          sources_[n].push_back(producer[at(id)]);
          readers_[at(producer[at(id)])].push_back(static_cast<int>(n));
        }
      }
      for (const int id : node.outputs) {
        if (id >= 0) producer[at(id)] = static_cast<int>(n);
      }
    }
  }

  // Why a supported node has to stay with the host; empty if it need not.
  std::string reason(size_t n) const {
    const OpNode& node = graph_.nodes[n];
    if (is_dequantize(node)) {
      return !readers_[n].empty() && all(readers_[n], hosts()) ? "what reads it stays with the host" : "";
    }
    if (is_quantize(node)) return any(sources_[n], hosts()) ? "what it quantizes stays with the host" : "";
    if (any(sources_[n], hosts(is_dequantize))) return "what dequantizes an operand stays with the host";
    const bool read = !readers_[n].empty();
    if (read && all(readers_[n], hosts(is_quantize))) return "what quantizes its result stays with the host";
    // The host computes it together with the op before it.
    const bool clamp = node.op == "Relu" || node.op == "Clip";
    if (!clamp || !read || !all(readers_[n], [](int, const OpNode& reader) { return is_quantize(reader); })) return {};
    const bool unit = any(sources_[n], [&](int source, const OpNode&) {
      return !supported_[at(source)] &&
             any(sources_[at(source)], [](int, const OpNode& first) { return is_dequantize(first); });
    });
    return unit ? "the op before it stays with the host" : "";
  }

 private:
  const OpGraph& graph_;
  const std::vector<bool>& supported_;
  std::vector<std::vector<int>> sources_, readers_;
};

}  // namespace

bool leave_units(const OpGraph& graph, std::vector<bool>& supported, std::map<int, std::string>& host) {
  const Units units(graph, supported);
  bool any = false;
  for (bool changed = true; changed; any = any || changed) {
    changed = false;
    for (size_t n = 0; n < supported.size(); ++n) {
      std::string reason = supported[n] ? units.reason(n) : "";
      if (reason.empty()) continue;
      supported[n] = false;
      host[static_cast<int>(n)] = std::move(reason);
      changed = true;
    }
  }
  return any;
}

}  // namespace softneuro::ort
