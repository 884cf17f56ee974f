#include "providers/ort/partition/classify.h"

#include <algorithm>

#include "base/shape.h"
#include "providers/ort/lower/fold.h"
#include "providers/ort/lower/quantized_values.h"
#include "providers/ort/partition/trial.h"

namespace softneuro::ort {
namespace {

bool may_hold(Holds holds, const HostValue& value) {
  const auto type = value.type.dtype();
  if (!type || is_real(*type)) return type.has_value();
  if (value.grid) return holds_quantized(holds);
  return holds == Holds::anything || holds == Holds::all || (holds == Holds::bytes && dtype_bits(*type) == 8);
}

Refusal check_tensor(const HostValue& value, const std::string& what, Holds holds) {
  if (!may_hold(holds, value)) return what + " is " + value.type.name() + (value.grid ? " with a scale" : "");
  if (value.has_shape && value.dims.size() > static_cast<size_t>(Shape::max_rank)) return what + " has rank above 8";
  for (const int64_t dim : value.dims) {
    if (dim == 0) return what + " is empty";
  }
  return {};
}

}  // namespace

Classifier::Classifier(const HostGraph& graph, bool tries)
    : graph_(graph), tries_(tries), kinds_(graph.values.size(), Kind::flow) {
  for (size_t id = 0; id < graph.values.size(); ++id) {
    if (graph.values[id].constant) kinds_[id] = Kind::constant;
  }
  for (const int id : graph.inputs) {
    if (graph.value(id).sized) kinds_[static_cast<size_t>(id)] = Kind::sized;
  }
}

Refusal Classifier::check(const HostNode& node) {
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

bool Classifier::folds(const HostNode& node) const {
  if (!can_fold(node) || node.since_version > newest_opset) return false;
  bool known = true, small = true;
  for (const int input : node.inputs) {
    if (input < 0) continue;
    const HostValue& value = graph_.value(input);
    const Kind kind = kinds_[static_cast<size_t>(input)];
    known = known && kind != Kind::flow && kind != Kind::weight;
    small = small && value.type.dtype();
  }
  if (known && small) return true;
  return reads_shape_only(node) && graph_.value(node.inputs[0]).type.dtype();
}

Refusal Classifier::check_weight(const HostNode& node) {
  if (Refusal no = check_parameters(graph_, node); !no.accepted()) return no;
  const OpEntry& entry = *find_op(node);
  if (Refusal no = entry.check(OpView(graph_, node, kinds_)); !no.accepted()) return no;
  const int output = node.outputs[0];
  if (Refusal no = check_tensor(graph_.value(output), "its output", entry.holds); !no.accepted()) return no;
  kinds_[static_cast<size_t>(output)] = Kind::weight;
  before_[output] = &node;
  return {};
}

Refusal Classifier::check_flow(const HostNode& node) const {
  const OpEntry* entry = find_op(node);
  if (entry == nullptr) return "there is no layer for it";
  if (Refusal no = check_parameters(graph_, node); !no.accepted()) return no;
  bool flows = false, sized = false;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] < 0) continue;
    const Kind kind = kinds_[static_cast<size_t>(node.inputs[i])];
    sized = sized || kind == Kind::sized;
    if (kind != Kind::flow) continue;
    const HostValue& value = graph_.value(node.inputs[i]);
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
std::vector<const HostNode*> Classifier::with_nodes_before(const HostNode& node) const {
  std::vector<const HostNode*> nodes;
  for (const int id : node.inputs) {
    const auto found = before_.find(id);
    if (found != before_.end() && std::find(nodes.begin(), nodes.end(), found->second) == nodes.end()) {
      nodes.push_back(found->second);
    }
  }
  nodes.push_back(&node);
  return nodes;
}

}  // namespace softneuro::ort
