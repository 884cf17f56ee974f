#include "providers/ort/partition/units.h"

#include <algorithm>

#include "providers/ort/graph/dynamic_sums.h"
#include "providers/ort/lower/quantized_values.h"

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
      : graph_(graph),
        supported_(supported),
        links_(links_of(graph)),
        readers_(links_.readers),
        sums_(find_dynamic_sums(graph)) {
    const std::vector<bool> read = read_nodes(graph);
    for (auto& readers : readers_) {
      std::erase_if(readers, [&](int reader) { return !read[at(reader)]; });
    }
  }

  // Why a supported node has to stay with the host; empty if it need not.
  std::string reason(size_t n) const {
    const OpNode& node = graph_.nodes[n];
    if (is_dequantize(node)) {
      return !readers_[n].empty() && all(readers_[n], hosts()) ? "what reads it stays with the host" : "";
    }
    if (is_quantize(node)) return any(links_.sources[n], hosts()) ? "what it quantizes stays with the host" : "";
    if (any(links_.sources[n], hosts(is_dequantize))) return "what dequantizes an operand stays with the host";
    if (is_dynamic_quantize(node)) return leaves_region(n) ? "what reads it stays with the host" : "";
    if (is_dynamic_product(node) && any(links_.sources[n], hosts(is_dynamic_quantize))) {
      return "what quantizes its operand stays with the host";
    }
    if (is_cut_sum(static_cast<int>(n))) return "a part of the integer sum with its scale stays with the host";
    const bool read = !readers_[n].empty();
    if (read && all(readers_[n], hosts(is_quantize))) return "what quantizes its result stays with the host";
    // The host computes it together with the op before it.
    const bool clamp = node.op == "Relu" || node.op == "Clip";
    if (!clamp || !read || !all(readers_[n], [](int, const OpNode& reader) { return is_quantize(reader); })) return {};
    const bool unit = any(links_.sources[n], [&](int source, const OpNode&) {
      return !supported_[at(source)] &&
             any(links_.sources[at(source)], [](int, const OpNode& first) { return is_dequantize(first); });
    });
    return unit ? "the op before it stays with the host" : "";
  }

 private:
  // What is quantized in the run has no bytes inside a region.
  bool leaves_region(size_t n) const {
    const std::vector<int>& outputs = graph_.nodes[n].outputs;
    const bool returned = std::any_of(graph_.outputs.begin(), graph_.outputs.end(), [&](int id) {
      return std::find(outputs.begin(), outputs.end(), id) != outputs.end();
    });
    return returned || any(links_.readers[n], [this](int reader, const OpNode& node) {
             return !supported_[at(reader)] || !(is_dynamic_product(node) || is_of_sum(reader));
           });
  }

  bool is_of_sum(int n) const {
    return std::any_of(sums_.begin(), sums_.end(), [&](const DynamicSum& sum) { return sum.has(n); });
  }
  // Whether a node is part of an integer sum of which another part stays with the host.
  bool is_cut_sum(int n) const {
    return std::any_of(sums_.begin(), sums_.end(), [&](const DynamicSum& sum) {
      if (!sum.has(n)) return false;
      const int parts[] = {sum.quantize, sum.sum, sum.cast, sum.factor, sum.scaled};
      return std::any_of(std::begin(parts), std::end(parts),
                         [&](int part) { return part >= 0 && !supported_[at(part)]; });
    });
  }

  const OpGraph& graph_;
  const std::vector<bool>& supported_;
  Links links_;
  // The links' without those that nobody reads: the host fuses nothing with them.
  std::vector<std::vector<int>> readers_;
  std::vector<DynamicSum> sums_;
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
