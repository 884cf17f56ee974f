#include "providers/ort/patterns.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

namespace softneuro::ort {
namespace {

// As a constant of the type has it.
double as_stored(double value, DType type) {
  return with_dtype(type, [&](auto kind) {
    return static_cast<double>(element_value(element_from<decltype(kind)>(static_cast<float>(value))));
  });
}

class Gelus {
 public:
  explicit Gelus(OpGraph& graph)
      : graph_(graph),
        producer_(graph.values.size(), -1),
        readers_(graph.values.size()),
        free_(graph.values.size(), true) {
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      const OpNode& node = graph.nodes[n];
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

  // A node index and those that it stands for.
  std::optional<std::pair<int, std::set<int>>> match(int erf, int& x) const {
    const int scaled = producer_of(node(erf).inputs[0]), plus = only_reader(erf);
    if (scaled < 0 || plus < 0 || only_reader(scaled) != erf) return {};
    x = operand(scaled, "Div", std::sqrt(2.0));
    if (x < 0) x = operand(scaled, "Mul", std::sqrt(0.5));
    if (x < 0 || operand(plus, "Add", 1) != node(erf).outputs[0]) return {};
    const int first = only_reader(plus);
    if (first < 0 || node(first).op != "Mul") return {};
    const int sum = node(plus).outputs[0], second = only_reader(first);
    std::set<int> inner{scaled, erf, plus};
    if (operand(first, "Mul", 0.5) == sum) {  // x * (0.5 * sum)
      if (second < 0 || other(second, node(first).outputs[0]) != x) return {};
      inner.insert(first);
      return std::pair(second, inner);
    }
    const int partner = other(first, sum);
    if (partner == x && second >= 0 && operand(second, "Mul", 0.5) == node(first).outputs[0]) {  // 0.5 * (x * sum)
      inner.insert(first);
      return std::pair(second, inner);
    }
    const int half = partner < 0 ? -1 : producer_of(partner);  // (0.5 * x) * sum
    if (half < 0 || only_reader(half) != first || operand(half, "Mul", 0.5) != x) return {};
    inner.insert(half);
    return std::pair(first, inner);
  }

 private:
  static size_t at(int index) { return static_cast<size_t>(index); }
  const OpNode& node(int index) const { return graph_.nodes[at(index)]; }
  int producer_of(int value) const { return value < 0 ? -1 : producer_[at(value)]; }

  // The one node that reads a node's output, if nothing else does.
  int only_reader(int index) const {
    const int id = node(index).outputs[0];
    return id >= 0 && free_[at(id)] && readers_[at(id)].size() == 1 ? readers_[at(id)][0] : -1;
  }

  // The operand beside a constant of this value, or -1.
  int operand(int index, const char* op, double wanted) const {
    const OpNode& found = node(index);
    if (found.op != op || !found.domain.empty() || found.inputs.size() != 2) return -1;
    for (const size_t side : {size_t{1}, size_t{0}}) {
      const int id = found.inputs[side];
      if (id < 0 || (side == 0 && found.op == "Div")) continue;
      const auto& constant = graph_.value(id).constant;
      const bool scalar = constant && is_real(constant->type) && constant->elements() == 1;
      if (scalar && constant->dims.size() <= 1 &&
          std::abs(constant->number() - as_stored(wanted, constant->type)) < 1e-5) {
        return found.inputs[1 - side];
      }
    }
    return -1;
  }

  // The operand of a product that is not `value`, or -1.
  int other(int index, int value) const {
    const OpNode& found = node(index);
    if (found.op != "Mul" || !found.domain.empty() || found.inputs.size() != 2) return -1;
    return found.inputs[0] == value ? found.inputs[1] : found.inputs[1] == value ? found.inputs[0] : -1;
  }

  const OpGraph& graph_;
  std::vector<int> producer_;
  std::vector<std::vector<int>> readers_;
  std::vector<bool> free_;  // neither an output of the graph nor read by a subgraph
};

}  // namespace

void merge_gelu(OpGraph& graph) {
  const auto is_erf = [](const OpNode& node) { return node.op == "Erf" && node.domain.empty(); };
  if (std::none_of(graph.nodes.begin(), graph.nodes.end(), is_erf)) return;
  const Gelus gelus(graph);
  std::set<int> gone;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    int x = -1;
    if (!is_erf(graph.nodes[n])) continue;
    const auto found = gelus.match(static_cast<int>(n), x);
    if (!found || graph.value(x).constant) continue;
    const auto& [last, inner] = *found;
    const auto taken = [&](int index) { return !graph.nodes[static_cast<size_t>(index)].host_provider.empty(); };
    if (taken(last) || std::any_of(inner.begin(), inner.end(), taken)) continue;
    OpNode& node = graph.nodes[static_cast<size_t>(last)];
    for (const int index : inner) node.merged.push_back(graph.nodes[static_cast<size_t>(index)].host);
    node.op = "Gelu", node.domain = "com.microsoft", node.since_version = 1;
    node.inputs = {x};
    node.attributes.clear();
    graph.opsets.emplace(node.domain, 1);
    gone.insert(inner.begin(), inner.end());
  }
  std::vector<OpNode> kept;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (!gone.contains(static_cast<int>(n))) kept.push_back(std::move(graph.nodes[n]));
  }
  graph.nodes = std::move(kept);
}

}  // namespace softneuro::ort
