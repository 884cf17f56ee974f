#include "providers/ort/partition/partition.h"

#include <algorithm>
#include <set>

#include "providers/ort/host/host_step.h"
#include "providers/ort/lower/quantized_values.h"
#include "providers/ort/partition/classify.h"

namespace softneuro::ort {
namespace {

UnitRole role_of(const HostNode& node) {
  if (is_quantize(node)) return UnitRole::quantize;
  if (is_dequantize(node)) return UnitRole::dequantize;
  return node.op == "Relu" || node.op == "Clip" ? UnitRole::clamp : UnitRole::none;
}

// What an op's check says, or that it cannot say anything: then the host keeps the op.
std::string refusal_of(Classifier& classifier, const HostNode& node) {
  if (!node.not_ours.empty()) return node.not_ours;
  try {
    return classifier.check(node).reason();
  } catch (const Error& error) {
    return error.what();
  }
}

// The graph as the core sees it, all its nodes by the same numbers. `refusals`: by node, empty where layers can do it.
class Teller {
 public:
  Teller(const HostGraph& graph, int min_region_size) : graph_(graph), least_(min_region_size) {
    told_.values.resize(graph.values.size());
    for (const int id : graph.outputs) {
      if (id >= 0) told_.values[slot(id)].is_output = true;
    }
  }

  // `is_near`: else it belongs to another region, or to none, and its quantized units have been looked at.
  void add(const HostNode& node, std::string refusal, bool folds, bool is_near = true) {
    softneuro::OpNode& told = told_.nodes.emplace_back();
    told.op = node.op;
    told.inputs = node.inputs, told.outputs = node.outputs;
    told.inputs.insert(told.inputs.end(), node.implicit_inputs.begin(), node.implicit_inputs.end());
    told.refusal = std::move(refusal);
    if (is_near) told.role = role_of(node);
    // Bytes cross the border, and weights are with their op.
    told.with_readers = is_dequantize(node);
    if (told.refusal.empty()) {
      const bool counts = !folds && (least_ <= 1 || !find_op(node)->moves_only);
      told.ops = counts ? 1 : 0;
      told.takes_inside = is_dynamic_product(node) || is_integer_sum(node) || reads_sums(node);
    }
    told.may_be_step = node.not_ours.empty() && may_be_step(graph_, node).accepted();
    // Inside a region there are no bytes of what is quantized in the run, nor integers that are sums of them.
    if (is_dynamic_quantize(node)) stay_inside({node.outputs[0], node.outputs[2]});
    if (is_integer_sum(node)) stay_inside(node.outputs), sums_.insert(node.outputs[0]);
  }

  OpGraph told() { return std::move(told_); }

 private:
  bool reads_sums(const HostNode& node) const {
    return std::any_of(node.inputs.begin(), node.inputs.end(), [&](int id) { return sums_.contains(id); });
  }
  void stay_inside(const std::vector<int>& ids) {
    for (const int id : ids) {
      if (id >= 0) told_.values[slot(id)].stays_inside = true;
    }
  }

  const HostGraph& graph_;
  int least_;
  OpGraph told_;
  std::set<int> sums_;  // values
};

// The nodes of a region in which no op tells what bytes mean that the whole graph tells.
std::map<int, std::string> without_grids(const HostGraph& graph, const std::vector<bool>& read,
                                         std::vector<int> nodes) {
  std::erase_if(nodes, [&](int n) { return !read[slot(n)]; });
  HostGraph alone = subgraph(graph, nodes);
  find_grids(alone);
  std::map<int, std::string> found;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const HostNode &node = graph.nodes[slot(nodes[i])], &own = alone.nodes[i];
    const auto differs = [&](const std::vector<int>& ids, const std::vector<int>& owns) {
      for (size_t k = 0; k < ids.size(); ++k) {
        if (ids[k] >= 0 && !graph.value(ids[k]).grid != !alone.value(owns[k]).grid) return true;
      }
      return false;
    };
    if (!differs(node.inputs, own.inputs) && !differs(node.outputs, own.outputs)) continue;
    found[nodes[i]] = "no op of its region tells the scale of its bytes";
  }
  return found;
}

}  // namespace

Partition find_regions(HostGraph& graph, int min_region_size) {
  find_grids(graph);
  Classifier classifier(graph, true);
  std::vector<std::string> refusals;
  std::vector<bool> folds;
  for (HostNode& node : graph.nodes) {
    refusals.push_back(refusal_of(classifier, node));
    folds.push_back(refusals.back().empty() && classifier.folds(node));
    node.is_step = false;
  }
  for (size_t id = 0; id < graph.values.size(); ++id) {
    graph.values[id].sized = classifier.is_sized(id) && !is_real(graph.values[id].type);
  }
  Teller teller(graph, min_region_size);
  for (size_t n = 0; n < folds.size(); ++n) teller.add(graph.nodes[n], std::move(refusals[n]), folds[n]);
  PartitionRules rules;
  rules.min_region_size = min_region_size, rules.cuts = true;
  rules.step_refusal = [&](int n) { return check_step(graph, graph.nodes[slot(n)]).reason(); };
  const std::vector<bool> read = read_nodes(graph);
  if (is_quantized(graph)) {
    rules.misfits = [&](const std::vector<int>& nodes) { return without_grids(graph, read, nodes); };
  }
  Partition found = find_parts(teller.told(), rules);
  for (const auto& [n, _] : found.step_reasons) graph.nodes[slot(n)].is_step = true;
  return found;
}

Partition without_steps(HostGraph& graph, const Partition::Part& part, int min_region_size) {
  Classifier classifier(graph, true);
  Teller teller(graph, min_region_size);
  std::vector<bool> inside(graph.nodes.size(), false);
  for (const int n : part.nodes) inside[slot(n)] = true;
  for (size_t n = 0; n < inside.size(); ++n) {
    HostNode& node = graph.nodes[n];
    const bool folds = refusal_of(classifier, node).empty() && classifier.folds(node);
    const bool stays = !inside[n] || node.is_step;
    teller.add(node, stays ? "a region with it inside does not pay" : "", folds, inside[n]);
    if (inside[n]) node.is_step = false;
  }
  PartitionRules rules;
  rules.min_region_size = min_region_size, rules.join = false;
  Partition found = find_parts(teller.told(), rules);
  std::erase_if(found.host, [&](const auto& one) { return !inside[slot(one.first)]; });
  return found;
}

std::map<int, std::string> refused_nodes(const HostGraph& saved) {
  std::map<int, std::string> refused;
  HostGraph region = saved;
  find_grids(region);
  Classifier classifier(region, false);
  for (size_t n = 0; n < region.nodes.size(); ++n) {
    const HostNode& node = region.nodes[n];
    const Refusal refusal = node.is_step ? may_be_step(region, node) : classifier.check(node);
    if (!refusal.accepted()) refused[static_cast<int>(n)] = refusal.reason();
  }
  return refused;
}

}  // namespace softneuro::ort
