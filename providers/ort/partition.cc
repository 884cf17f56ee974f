#include "providers/ort/partition.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "base/shape.h"
#include "providers/ort/fold.h"
#include "providers/ort/ops/ops.h"

namespace softneuro::ort {
namespace {

Refusal check_tensor(const OpValue& value, const std::string& what) {
  if (value.type != ElementType::float32) return what + " is " + element_name(value.type);
  if (value.has_shape && value.dims.size() > static_cast<size_t>(Shape::max_rank)) return what + " has rank above 8";
  for (const int64_t dim : value.dims) {
    if (dim == 0) return what + " is empty";
  }
  return {};
}

class Classifier {
 public:
  explicit Classifier(const OpGraph& graph) : graph_(graph), kinds_(graph.values.size(), Kind::flow) {
    for (size_t id = 0; id < graph.values.size(); ++id) {
      if (graph.values[id].constant) kinds_[id] = Kind::constant;
    }
  }

  void set_sized(int id) { kinds_[static_cast<size_t>(id)] = Kind::sized; }

  // Nodes must be asked in topological order.
  Refusal check(const OpNode& node) {
    if (folds(node)) {
      for (const int output : node.outputs) {
        if (output >= 0) kinds_[static_cast<size_t>(output)] = Kind::sized;
      }
      return {};
    }
    return check_flow(node);
  }

  bool folds(const OpNode& node) const {
    if (!can_fold(node) || node.since_version > newest_opset) return false;
    bool known = true, small = true;
    for (const int input : node.inputs) {
      if (input < 0) continue;
      const OpValue& value = graph_.value(input);
      known = known && kinds_[static_cast<size_t>(input)] != Kind::flow;
      small = small && element_size(value.type) != 0 && value.type != ElementType::float64;
    }
    if (known && small) return true;
    return reads_shape_only(node) && graph_.value(node.inputs[0]).type == ElementType::float32;
  }

 private:
  Refusal check_flow(const OpNode& node) const {
    const OpEntry* entry = find_op(node);
    if (entry == nullptr) return "there is no layer for it";
    bool flows = false;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] < 0 || kinds_[static_cast<size_t>(node.inputs[i])] != Kind::flow) continue;
      const OpValue& value = graph_.value(node.inputs[i]);
      flows = true;
      if (Refusal no = check_tensor(value, "its input " + std::to_string(i)); !no.accepted()) return no;
      if (!value.has_shape) return "the rank of its input " + std::to_string(i) + " is unknown";
    }
    if (!flows) return "its operands are constant";
    for (const int output : node.outputs) {
      if (output < 0) continue;
      if (Refusal no = check_tensor(graph_.value(output), "its output"); !no.accepted()) return no;
    }
    return entry->check(OpView(graph_, node, kinds_));
  }

  const OpGraph& graph_;
  std::vector<Kind> kinds_;
};

// A supported node's depth is the largest number of ops of the host between regions on any path to it. Nodes of one
// depth form a convex set, whose connected parts are the regions; no two of them can wait for each other.
std::vector<std::vector<int>> convex_parts(const OpGraph& graph, const std::vector<bool>& supported) {
  const auto count = static_cast<int>(graph.nodes.size());
  std::vector<int> producer(graph.values.size(), -1), depth(graph.nodes.size(), 0), parent(graph.nodes.size());
  std::iota(parent.begin(), parent.end(), 0);
  const auto root = [&](int node) {
    while (parent[static_cast<size_t>(node)] != node) {
      auto& up = parent[static_cast<size_t>(node)];
      up = parent[static_cast<size_t>(up)];
      node = up;
    }
    return node;
  };
  for (int n = 0; n < count; ++n) {
    const OpNode& node = graph.nodes[static_cast<size_t>(n)];
    const bool inside = supported[static_cast<size_t>(n)];
    std::vector<int> sources;
    for (const auto* list : {&node.inputs, &node.implicit_inputs}) {
      for (const int id : *list) {
        if (id >= 0 && producer[static_cast<size_t>(id)] >= 0) sources.push_back(producer[static_cast<size_t>(id)]);
      }
    }
    int& own = depth[static_cast<size_t>(n)];
    own = inside ? 0 : -1;
    for (const int source : sources) {
      const int from = depth[static_cast<size_t>(source)];
      const bool gap = inside && !supported[static_cast<size_t>(source)] && from >= 0;
      own = std::max(own, from + (gap ? 1 : 0));
    }
    for (const int source : sources) {
      if (inside && supported[static_cast<size_t>(source)] && depth[static_cast<size_t>(source)] == own) {
        parent[static_cast<size_t>(root(source))] = root(n);
      }
    }
    for (const int id : node.outputs) {
      if (id >= 0) producer[static_cast<size_t>(id)] = n;
    }
  }
  std::map<int, std::vector<int>> groups;
  for (int n = 0; n < count; ++n) {
    if (supported[static_cast<size_t>(n)]) groups[root(n)].push_back(n);
  }
  std::vector<std::vector<int>> parts;
  for (auto& [_, nodes] : groups) parts.push_back(std::move(nodes));
  return parts;
}

}  // namespace

Partition find_parts(const OpGraph& graph, int min_region_size) {
  Partition partition;
  Classifier classifier(graph);
  std::vector<bool> supported(graph.nodes.size(), false), folded(graph.nodes.size(), false);
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const OpNode& node = graph.nodes[n];
    const Refusal refusal = node.host_provider.empty() ? classifier.check(node)
                                                       : Refusal("provider " + node.host_provider + " has taken it");
    supported[n] = refusal.accepted();
    folded[n] = supported[n] && classifier.folds(node);
    if (!supported[n]) partition.host[static_cast<int>(n)] = refusal.reason();
  }
  for (auto& nodes : convex_parts(graph, supported)) {
    Partition::Part part{std::move(nodes), 0};
    for (const int n : part.nodes) {
      if (folded[static_cast<size_t>(n)]) continue;
      const OpEntry* entry = find_op(graph.nodes[static_cast<size_t>(n)]);
      if (min_region_size <= 1 || !entry->moves_only) ++part.ops;
    }
    if (part.ops > 0 && part.ops >= min_region_size) {
      partition.parts.push_back(std::move(part));
      continue;
    }
    for (const int n : part.nodes) {
      partition.host[n] = "its region has " + std::to_string(part.ops) +
                          " op(s), fewer than min_region_size=" + std::to_string(min_region_size);
    }
  }
  return partition;
}

std::map<int, std::string> refused_nodes(const OpGraph& region) {
  std::map<int, std::string> refused;
  Classifier classifier(region);
  for (const int id : region.inputs) {
    if (region.value(id).type != ElementType::float32) classifier.set_sized(id);
  }
  for (size_t n = 0; n < region.nodes.size(); ++n) {
    const Refusal refusal = classifier.check(region.nodes[n]);
    if (!refusal.accepted()) refused[static_cast<int>(n)] = refusal.reason();
  }
  return refused;
}

OpGraph subgraph(const OpGraph& graph, const std::vector<int>& nodes) {
  OpGraph part;
  part.name = graph.name, part.model_path = graph.model_path, part.opsets = graph.opsets;
  std::map<int, int> ids;
  std::set<int> made, inputs;
  const auto id_of = [&](int old) {
    if (old < 0) return -1;
    const auto [found, is_new] = ids.try_emplace(old, static_cast<int>(part.values.size()));
    if (is_new) part.values.push_back(graph.value(old));
    return found->second;
  };
  const std::set<int> inside(nodes.begin(), nodes.end());
  std::set<int> wanted(graph.outputs.begin(), graph.outputs.end());
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (inside.contains(static_cast<int>(n))) continue;
    wanted.insert(graph.nodes[n].inputs.begin(), graph.nodes[n].inputs.end());
    wanted.insert(graph.nodes[n].implicit_inputs.begin(), graph.nodes[n].implicit_inputs.end());
  }
  for (const int n : nodes) {
    OpNode node = graph.nodes[static_cast<size_t>(n)];
    for (const int input : node.inputs) {
      if (input < 0 || made.contains(input) || graph.value(input).constant || !inputs.insert(input).second) continue;
      part.inputs.push_back(id_of(input));
    }
    made.insert(node.outputs.begin(), node.outputs.end());
    for (const int output : node.outputs) {
      if (output >= 0 && wanted.contains(output)) part.outputs.push_back(id_of(output));
    }
    for (auto* list : {&node.inputs, &node.outputs, &node.implicit_inputs}) {
      std::transform(list->begin(), list->end(), list->begin(), id_of);
    }
    part.nodes.push_back(std::move(node));
  }
  return part;
}

}  // namespace softneuro::ort
