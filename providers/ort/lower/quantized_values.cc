#include "providers/ort/lower/quantized_values.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "providers/ort/lower/ops/ops.h"
#include "providers/ort/lower/quantized_constants.h"

namespace softneuro::ort {
namespace {

using Grid = std::shared_ptr<const Quantization>;

bool has_bytes(const HostValue& value) {
  return !value.constant && (value.type == ElementType(DType::uint8) || value.type == ElementType(DType::int8));
}

bool same(const Grid& a, const Grid& b) { return a == b || (a && b && *a == *b); }

// Whether so many scales are those of an axis.
bool has_axis(const HostNode& node, const HostValue& value, int64_t count) {
  if (!(is_quantize(node) || is_dequantize(node)) || node.integer("block_size", 0) != 0 || count == 0) return false;
  const auto rank = static_cast<int64_t>(value.dims.size());
  int64_t axis = node.integer("axis", 1);
  if (axis < 0) axis += rank;
  return value.has_shape && axis >= 0 && axis < rank && value.dims[static_cast<size_t>(axis)] == count;
}

// Finds the grid of a tensor that flows: one scale or those of an axis, and one zero point of the tensor's type or
// none. Null with the reason otherwise.
Grid find_grid(const HostGraph& graph, const HostNode& node, const HostValue& value, size_t scale, size_t zero_point,
               std::string& why) {
  const auto constant = [&](size_t input) { return graph.value(node.inputs[input]).constant.get(); };
  const auto refuse = [&](std::string reason) {
    why = std::move(reason);
    return nullptr;
  };
  if (!has_bytes(value)) return refuse("'" + value.name + "' is " + value.type.name());
  if (!node.has_input(scale)) return refuse("it has no scale");
  const HostTensor* factor = constant(scale);
  if (factor == nullptr || !is_real(factor->type)) return refuse("its scale is not constant");
  const int64_t count = factor->elements();
  if (count != 1 && !has_axis(node, value, count)) return refuse("it has " + std::to_string(count) + " scales");
  Quantization grid;
  grid.scales = factor->reals();
  for (const float one : grid.scales) {
    if (!std::isfinite(one) || one <= 0 || (count != 1 && !std::isfinite(1 / one)))
      return refuse("its scale is " + exact_number(static_cast<double>(one)));
  }
  // What has a scale for each channel is a blob of steps, which are multiplied where they become reals; what has a zero
  // point for each, of steps from 0.
  if (count != 1) grid.scales = {1};
  grid.zero_points = {0};
  if (node.has_input(zero_point)) {
    const HostTensor* zero = constant(zero_point);
    if (zero == nullptr) return refuse("its zero point is not constant");
    if (ElementType(zero->type) != value.type || zero->elements() != count) {
      return refuse("its zero point is not one number of the tensor's type");
    }
    const std::vector<int64_t> zeros = zero->integers();
    if (is_one(zeros)) grid.zero_points[0] = static_cast<int32_t>(zeros[0]);
  }
  if (value.type == ElementType(DType::int8)) grid.least = -128, grid.most = 127;
  return std::make_shared<const Quantization>(std::move(grid));
}

// Passes bytes on whose meaning it does not need: all inputs that are bytes mean the same as the result.
bool passes_on(const HostNode& node) {
  const OpEntry* entry = find_op(node);
  return entry != nullptr && holds_quantized(entry->holds) && quantized_inputs(node).empty() && !quantized_output(node);
}

class Finder {
 public:
  explicit Finder(HostGraph& graph) : graph_(graph), readers_(graph.values.size()) {
    for (const HostNode& node : graph.nodes) {
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (node.inputs[i] >= 0) readers_[static_cast<size_t>(node.inputs[i])].push_back({&node, i});
      }
    }
  }

  void find() {
    for (const HostNode& node : graph_.nodes) {
      for (const int id : node.outputs) {
        if (id >= 0 && has_bytes(graph_.value(id))) at(id).grid = made(node, graph_.value(id));
      }
    }
    for (auto node = graph_.nodes.rbegin(); node != graph_.nodes.rend(); ++node) {
      for (const int id : node->outputs) look_ahead(id);
    }
    for (const int id : graph_.inputs) look_ahead(id);
  }

 private:
  struct Reader {
    const HostNode* node;
    size_t input;
  };

  HostValue& at(int id) { return graph_.values[static_cast<size_t>(id)]; }

  Grid made(const HostNode& node, const HostValue& value) const {
    std::string why;
    if (const auto own = quantized_output(node)) {
      return find_grid(graph_, node, value, own->scale, own->zero_point, why);
    }
    if (!passes_on(node)) return nullptr;
    const auto flows = std::find_if(node.inputs.begin(), node.inputs.end(),
                                    [&](int id) { return id >= 0 && has_bytes(graph_.value(id)); });
    return flows == node.inputs.end() ? nullptr : graph_.value(*flows).grid;
  }

  void look_ahead(int id) {
    if (id < 0 || !has_bytes(graph_.value(id)) || at(id).grid) return;
    Grid all;
    for (const Reader& reader : readers_[static_cast<size_t>(id)]) {
      const Grid one = wanted(reader);
      if (!one || (all && !same(all, one))) return;
      all = one;
    }
    at(id).grid = all;
  }

  Grid wanted(const Reader& reader) const {
    std::string why;
    for (const QuantizedInput& input : quantized_inputs(*reader.node)) {
      if (input.value != reader.input) continue;
      return find_grid(graph_, *reader.node, graph_.value(reader.node->inputs[input.value]), input.scale,
                       input.zero_point, why);
    }
    if (!passes_on(*reader.node)) return nullptr;
    for (const int id : reader.node->outputs) {
      if (id >= 0) return graph_.value(id).grid;
    }
    return nullptr;
  }

  HostGraph& graph_;
  std::vector<std::vector<Reader>> readers_;
};

}  // namespace

bool is_one(const std::vector<int64_t>& zero_points) {
  return std::all_of(zero_points.begin(), zero_points.end(), [&](int64_t z) { return z == zero_points[0]; });
}

bool is_quantize(const HostNode& node) { return node.op == "QuantizeLinear" && find_op(node) != nullptr; }
bool is_dequantize(const HostNode& node) { return node.op == "DequantizeLinear" && find_op(node) != nullptr; }
bool is_dynamic_quantize(const HostNode& node) {
  return node.op == "DynamicQuantizeLinear" && find_op(node) != nullptr;
}
bool is_dynamic_product(const HostNode& node) {
  return (node.op == "MatMulIntegerToFloat" || node.op == "DynamicQuantizeMatMul") && find_op(node) != nullptr;
}

bool is_integer_sum(const HostNode& node) {
  return (node.op == "MatMulInteger" || node.op == "ConvInteger") && find_op(node) != nullptr;
}

std::vector<QuantizedInput> quantized_inputs(const HostNode& node) {
  if (is_dequantize(node)) return {{0, 1, 2}};
  const QLinearOp* op = find_qlinear(node);
  if (op == nullptr) return {};
  std::vector<QuantizedInput> inputs;
  const size_t operands = op->operands > 0 ? op->operands : (node.inputs.size() - op->first) / 3;
  for (size_t i = 0; i < operands; ++i) {
    const size_t at = op->first + 3 * i;
    inputs.push_back({at, at + 1, at + 2});
  }
  return inputs;
}

std::optional<QuantizedOutput> quantized_output(const HostNode& node) {
  if (is_quantize(node)) return QuantizedOutput{1, 2};
  const QLinearOp* op = find_qlinear(node);
  if (op == nullptr || !node.has_input(op->scale)) return {};  // real, as QGemm's may be
  return QuantizedOutput{op->scale, op->scale + 1};
}

bool is_quantized(const HostGraph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const HostNode& node) {
    return quantized_output(node) || !quantized_inputs(node).empty() || is_dynamic_quantize(node) ||
           is_dynamic_product(node);
  });
}

std::vector<bool> outputs_in_steps(const HostGraph& graph) {
  constexpr int bytes = 4;  // of MatMulNBits: it may round its operand
  std::vector<bool> in_steps(graph.values.size(), false), dequantized(graph.values.size(), false);
  for (const HostNode& node : graph.nodes) {
    const bool is_dq = is_dequantize(node);
    // With a weight of ordinary scales the host computes what the op says.
    const bool is_weight = dequantizes_constant(graph, node) && node.integer("block_size", 0) == 0;
    bool steps = quantized_output(node) || (!is_dq && !quantized_inputs(node).empty()) || is_dynamic_quantize(node) ||
                 is_dynamic_product(node) || (node.op == "MatMulNBits" && node.integer("accuracy_level", 0) == bytes);
    for (const int id : node.inputs) {
      if (id >= 0) steps = steps || in_steps[static_cast<size_t>(id)] || dequantized[static_cast<size_t>(id)];
    }
    for (const int id : node.outputs) {
      if (id < 0) continue;
      in_steps[static_cast<size_t>(id)] = steps;
      dequantized[static_cast<size_t>(id)] = is_dq && !is_weight;
    }
  }
  std::vector<bool> outputs;
  for (const int id : graph.outputs) outputs.push_back(id >= 0 && in_steps[static_cast<size_t>(id)]);
  return outputs;
}

bool dequantizes_constant(const HostGraph& graph, const HostNode& node) {
  return is_dequantize(node) && node.has_input(0) && graph.value(node.inputs[0]).constant;
}

void find_grids(HostGraph& graph) {
  for (HostValue& value : graph.values) value.grid = nullptr;
  if (is_quantized(graph)) Finder(graph).find();
}

Refusal check_parameters(const HostGraph& graph, const HostNode& node) {
  std::string why;
  for (const QuantizedInput& input : quantized_inputs(node)) {
    if (!node.has_input(input.value)) return "an operand is missing";
    const HostValue& value = graph.value(node.inputs[input.value]);
    if (value.constant) {
      if (Refusal no = check_quantized_constant(graph, node, input); !no.accepted()) return no;
      continue;
    }
    const Grid own = find_grid(graph, node, value, input.scale, input.zero_point, why);
    if (!own) return why;
    if (!value.grid) return "other ops read '" + value.name + "' otherwise";
    if (!same(own, value.grid)) return "'" + value.name + "' has another scale or zero point";
  }
  if (passes_on(node)) {
    const auto is_bytes = [&](int id) { return id >= 0 && has_bytes(graph.value(id)); };
    for (const int out : node.outputs) {
      if (!is_bytes(out)) continue;
      for (const int id : node.inputs) {
        if (!is_bytes(id) || same(graph.value(id).grid, graph.value(out).grid)) continue;
        return "'" + graph.value(id).name + "' has another scale or zero point than its result";
      }
    }
  }
  const auto output = quantized_output(node);
  if (!output) return {};
  for (const int id : node.outputs) {
    if (id >= 0 && !find_grid(graph, node, graph.value(id), output->scale, output->zero_point, why)) return why;
  }
  return {};
}

Grid unsigned_grid(const Grid& grid) {
  if (!grid || !grid->is_signed()) return grid;
  Quantization moved = *grid;
  for (int32_t& zero_point : moved.zero_points) zero_point += 128;
  moved.least += 128, moved.most += 128;
  return std::make_shared<const Quantization>(std::move(moved));
}

}  // namespace softneuro::ort
