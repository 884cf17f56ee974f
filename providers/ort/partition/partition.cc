#include "providers/ort/partition/partition.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "base/shape.h"
#include "providers/ort/host/host_step.h"
#include "providers/ort/lower/fold.h"
#include "providers/ort/lower/ops/ops.h"
#include "providers/ort/lower/quantized_values.h"
#include "providers/ort/partition/convex.h"
#include "providers/ort/partition/join.h"
#include "providers/ort/partition/trial.h"
#include "providers/ort/partition/units.h"

namespace softneuro::ort {
namespace {

bool may_hold(Holds holds, const OpValue& value) {
  const auto type = value.type.dtype();
  if (!type || is_real(*type)) return type.has_value();
  if (value.grid) return holds == Holds::quantized || holds == Holds::bytes;
  return holds == Holds::anything || (holds == Holds::bytes && dtype_bits(*type) == 8);
}

Refusal check_tensor(const OpValue& value, const std::string& what, Holds holds) {
  if (!may_hold(holds, value)) return what + " is " + value.type.name() + (value.grid ? " with a scale" : "");
  if (value.has_shape && value.dims.size() > static_cast<size_t>(Shape::max_rank)) return what + " has rank above 8";
  for (const int64_t dim : value.dims) {
    if (dim == 0) return what + " is empty";
  }
  return {};
}

class Classifier {
 public:
  // `tries`: layers are made of what is fixed.
  Classifier(const OpGraph& graph, bool tries) : graph_(graph), tries_(tries), kinds_(graph.values.size(), Kind::flow) {
    for (size_t id = 0; id < graph.values.size(); ++id) {
      if (graph.values[id].constant) kinds_[id] = Kind::constant;
    }
    for (const int id : graph.inputs) {
      if (graph.value(id).sized) kinds_[static_cast<size_t>(id)] = Kind::sized;
    }
  }

  bool is_sized(size_t id) const { return kinds_[id] == Kind::sized; }

  // Nodes must be asked in topological order.
  Refusal check(const OpNode& node) {
    if (folds(node)) {
      for (const int output : node.outputs) {
        if (output >= 0) kinds_[static_cast<size_t>(output)] = Kind::sized;
      }
      return {};
    }
    if (dequantizes_constant(graph_, node)) return check_weight(node);
    if (is_dynamic_quantize(node)) before_[node.outputs[0]] = &node;
    return check_flow(node);
  }

  bool folds(const OpNode& node) const {
    if (!can_fold(node) || node.since_version > newest_opset) return false;
    bool known = true, small = true;
    for (const int input : node.inputs) {
      if (input < 0) continue;
      const OpValue& value = graph_.value(input);
      const Kind kind = kinds_[static_cast<size_t>(input)];
      known = known && kind != Kind::flow && kind != Kind::weight;
      small = small && value.type.dtype();
    }
    if (known && small) return true;
    return reads_shape_only(node) && graph_.value(node.inputs[0]).type.dtype();
  }

 private:
  Refusal check_weight(const OpNode& node) {
    if (Refusal no = check_parameters(graph_, node); !no.accepted()) return no;
    const OpEntry& entry = *find_op(node);
    if (Refusal no = entry.check(OpView(graph_, node, kinds_)); !no.accepted()) return no;
    const int output = node.outputs[0];
    if (Refusal no = check_tensor(graph_.value(output), "its output", entry.holds); !no.accepted()) return no;
    kinds_[static_cast<size_t>(output)] = Kind::weight;
    before_[output] = &node;
    return {};
  }

  Refusal check_flow(const OpNode& node) const {
    const OpEntry* entry = find_op(node);
    if (entry == nullptr) return "there is no layer for it";
    if (Refusal no = check_parameters(graph_, node); !no.accepted()) return no;
    bool flows = false, sized = false;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] < 0) continue;
      const Kind kind = kinds_[static_cast<size_t>(node.inputs[i])];
      sized = sized || kind == Kind::sized;
      if (kind != Kind::flow) continue;
      const OpValue& value = graph_.value(node.inputs[i]);
      flows = true;
      if (Refusal no = check_tensor(value, "its input " + std::to_string(i), entry->holds); !no.accepted()) return no;
      if (!value.has_shape) return "the rank of its input " + std::to_string(i) + " is unknown";
    }
    if (!flows) return "its operands are constant";
    for (const int output : node.outputs) {
      if (output < 0 || (node.outputs.size() > 1 && !is_read(graph_, output))) continue;
      if (Refusal no = check_tensor(graph_.value(output), "its output", entry->holds); !no.accepted()) return no;
    }
    const Refusal refusal = entry->check(OpView(graph_, node, kinds_));
    const bool tries = tries_ && refusal.accepted() && !sized && !is_dynamic_quantize(node);
    return tries ? try_layers(graph_, with_nodes_before(node)) : refusal;
  }

  // After those that it makes no sense without.
  std::vector<const OpNode*> with_nodes_before(const OpNode& node) const {
    std::vector<const OpNode*> nodes;
    for (const int id : node.inputs) {
      const auto found = before_.find(id);
      if (found != before_.end() && std::find(nodes.begin(), nodes.end(), found->second) == nodes.end()) {
        nodes.push_back(found->second);
      }
    }
    nodes.push_back(&node);
    return nodes;
  }

  const OpGraph& graph_;
  bool tries_;
  std::vector<Kind> kinds_;
  std::map<int, const OpNode*> before_;  // by value: what makes it, a weight or quantized in the run
};

// Parts of a graph, with what counts in each.
class Cutter {
 public:
  Cutter(OpGraph& graph, int min_region_size)
      : graph_(graph),
        min_region_size_(min_region_size),
        classifier_(graph, true),
        read_(read_nodes(graph)),
        counts_(graph.nodes.size(), false) {
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      const OpNode& node = graph.nodes[n];
      refusals_.push_back(node.not_ours.empty() ? classifier_.check(node) : Refusal(node.not_ours));
      if (!refusals_[n].accepted() || classifier_.folds(node) || !read_[n]) continue;
      counts_[n] = min_region_size <= 1 || !find_op(node)->moves_only;
    }
  }

  const Classifier& classifier() const { return classifier_; }
  const Refusal& refusal(size_t node) const { return refusals_[node]; }

  std::vector<Partition::Part> parts(const std::vector<bool>& taken) const {
    std::vector<Partition::Part> parts;
    for (auto& nodes : convex_parts(graph_, taken)) {
      Partition::Part& part = parts.emplace_back();
      for (const int n : nodes) {
        part.ops += counts_[static_cast<size_t>(n)] ? 1 : 0;
        part.has_steps = part.has_steps || graph_.nodes[static_cast<size_t>(n)].is_step;
      }
      part.nodes = std::move(nodes);
    }
    return parts;
  }

  // With the steps that lie between a part's own ops.
  std::vector<Partition::Part> joined_parts(const std::vector<bool>& supported) {
    std::vector<bool> steps(supported.size(), false);
    for (size_t n = 0; n < steps.size(); ++n) {
      const OpNode& node = graph_.nodes[n];
      steps[n] = !supported[n] && node.not_ours.empty() && may_be_step(graph_, node).accepted();
    }
    steps = joining_steps(graph_, parts(supported), std::move(steps), min_region_size_);
    while (true) {
      std::vector<bool> taken = supported;
      for (size_t n = 0; n < steps.size(); ++n) {
        graph_.nodes[n].is_step = steps[n];
        if (steps[n]) taken[n] = true;
      }
      std::vector<Partition::Part> joined = parts(taken);
      if (!drop_outer(joined, steps)) return joined;
    }
  }

  // Leaves nodes to the host in whose part no op tells what bytes mean. Whether there were any.
  bool drop_unknown(const std::vector<Partition::Part>& parts, std::vector<bool>& supported,
                    std::map<int, std::string>& host) const {
    bool dropped = false;
    for (const Partition::Part& part : parts) {
      std::vector<int> nodes = part.nodes;
      std::erase_if(nodes, [&](int n) { return !read_[static_cast<size_t>(n)]; });
      OpGraph alone = subgraph(graph_, nodes);
      find_grids(alone);
      for (size_t i = 0; i < nodes.size(); ++i) {
        const OpNode &node = graph_.nodes[static_cast<size_t>(nodes[i])], &own = alone.nodes[i];
        const auto differs = [&](const std::vector<int>& ids, const std::vector<int>& owns) {
          for (size_t k = 0; k < ids.size(); ++k) {
            if (ids[k] >= 0 && !graph_.value(ids[k]).grid != !alone.value(owns[k]).grid) return true;
          }
          return false;
        };
        if (!differs(node.inputs, own.inputs) && !differs(node.outputs, own.outputs)) continue;
        supported[static_cast<size_t>(nodes[i])] = false;
        host[nodes[i]] = "no op of its region tells the scale of its bytes";
        dropped = true;
      }
    }
    return dropped;
  }

  void keep_large(std::vector<Partition::Part> parts, Partition& partition) const {
    for (Partition::Part& part : parts) {
      if (part.ops > 0 && part.ops >= min_region_size_) {
        for (const int n : part.nodes) partition.host.erase(n);
        partition.parts.push_back(std::move(part));
        continue;
      }
      for (const int n : part.nodes) {
        partition.host[n] = read_[static_cast<size_t>(n)]
                                ? "its region has " + std::to_string(part.ops) +
                                      " op(s), fewer than min_region_size=" + std::to_string(min_region_size_)
                                : "nobody reads what it makes";
      }
    }
  }

 private:
  // Steps at a part's border join nothing. Whether there were any.
  bool drop_outer(const std::vector<Partition::Part>& parts, std::vector<bool>& steps) const {
    bool dropped = false;
    for (const Partition::Part& part : parts) {
      if (!part.has_steps) continue;
      std::set<int> made, read;
      for (const int n : part.nodes) {
        const OpNode& node = graph_.nodes[static_cast<size_t>(n)];
        made.insert(node.outputs.begin(), node.outputs.end());
        read.insert(node.inputs.begin(), node.inputs.end());
      }
      made.erase(-1), read.erase(-1);
      for (const int n : part.nodes) {
        const OpNode& node = graph_.nodes[static_cast<size_t>(n)];
        const auto in = [](const std::set<int>& ids) { return [&ids](int id) { return ids.contains(id); }; };
        const bool inside = std::any_of(node.inputs.begin(), node.inputs.end(), in(made)) &&
                            std::any_of(node.outputs.begin(), node.outputs.end(), in(read));
        if (!node.is_step || inside) continue;
        steps[static_cast<size_t>(n)] = false;
        dropped = true;
      }
    }
    return dropped;
  }

  OpGraph& graph_;
  int min_region_size_;
  Classifier classifier_;
  std::vector<Refusal> refusals_;
  std::vector<bool> read_;
  std::vector<bool> counts_;  // towards min_region_size: what nobody reads is dropped
};

}  // namespace

Partition find_parts(OpGraph& graph, int min_region_size) {
  Partition partition;
  find_grids(graph);
  Cutter cutter(graph, min_region_size);
  std::vector<bool> supported(graph.nodes.size(), false);
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    supported[n] = cutter.refusal(n).accepted();
    if (!supported[n]) partition.host[static_cast<int>(n)] = cutter.refusal(n).reason();
  }
  for (size_t id = 0; id < graph.values.size(); ++id) {
    graph.values[id].sized = cutter.classifier().is_sized(id) && !is_real(graph.values[id].type);
  }
  if (!is_quantized(graph)) {
    cutter.keep_large(cutter.joined_parts(supported), partition);
    return partition;
  }
  while (true) {
    leave_units(graph, supported, partition.host);
    std::vector<Partition::Part> parts = cutter.joined_parts(supported);
    if (cutter.drop_unknown(parts, supported, partition.host)) continue;
    cutter.keep_large(std::move(parts), partition);
    for (size_t n = 0; n < supported.size(); ++n) {
      if (partition.host.contains(static_cast<int>(n))) supported[n] = false;
    }
    if (!leave_units(graph, supported, partition.host)) return partition;
    partition.parts.clear();
  }
}

Partition without_steps(OpGraph& graph, const Partition::Part& part, int min_region_size) {
  Partition partition;
  std::vector<bool> supported(graph.nodes.size(), false);
  for (const int n : part.nodes) {
    OpNode& node = graph.nodes[static_cast<size_t>(n)];
    supported[static_cast<size_t>(n)] = !node.is_step;
    if (node.is_step) partition.host[n] = "a region with it inside does not pay";
    node.is_step = false;
  }
  const Cutter cutter(graph, min_region_size);
  cutter.keep_large(cutter.parts(supported), partition);
  return partition;
}

std::map<int, std::string> refused_nodes(const OpGraph& saved) {
  std::map<int, std::string> refused;
  OpGraph region = saved;
  find_grids(region);
  Classifier classifier(region, false);
  for (size_t n = 0; n < region.nodes.size(); ++n) {
    const OpNode& node = region.nodes[n];
    const Refusal refusal = node.is_step ? may_be_step(region, node) : classifier.check(node);
    if (!refusal.accepted()) refused[static_cast<int>(n)] = refusal.reason();
  }
  return refused;
}

}  // namespace softneuro::ort
