// Tensors that are quantized in the run, and products of them. Inside a region their bytes are the reals that
// dynamic_quantize calls steps: the zero point is off. Sums of such products, integers at the host, are reals as well.
#include <algorithm>

#include "providers/ort/lower/ops/ops.h"
#include "providers/ort/lower/quantized_constants.h"

namespace softneuro::ort {
namespace {

Refusal check_bytes(const OpView& view, size_t input) {
  const HostTensor* weight = view.constant(input);
  const bool bytes = weight != nullptr && (weight->type == DType::int8 || weight->type == DType::uint8);
  return bytes ? Refusal() : Refusal("its weight is not constant bytes");
}

// Both an operand and its zero point have to come from one quantization.
Refusal check_operand(const OpView& view, size_t zero_point) {
  const std::vector<int>& in = view.node().inputs;
  const auto& nodes = view.graph().nodes;
  const bool made = view.has(zero_point) && std::any_of(nodes.begin(), nodes.end(), [&](const HostNode& node) {
                      return is_dynamic_quantize(node) && node.outputs[0] == in[0] && node.outputs[2] == in[zero_point];
                    });
  return made ? Refusal() : Refusal("its operand is not quantized in the run");
}

// Sums are integers at the host and reals in a region: nothing but a conversion may read them.
Refusal check_sums(const OpView& view) {
  const int sums = view.node().outputs[0];
  const auto reads = [&](const std::vector<int>& ids) { return std::find(ids.begin(), ids.end(), sums) != ids.end(); };
  if (reads(view.graph().outputs)) return "its sums are a result";
  for (const HostNode& node : view.graph().nodes) {
    const bool inner = reads(node.implicit_inputs);
    if (!inner && !reads(node.inputs)) continue;
    const bool converts =
        node.op == "Cast" && node.domain.empty() && is_real(ElementType(static_cast<int>(node.integer("to", 0))));
    if (inner || !converts) return "its sums do not become reals at once";
  }
  return {};
}

// A weight's zero point: one, or one for each index of its last axis if `columns`.
Refusal check_zeros(const OpView& view, size_t input, bool columns) {
  if (!view.has(input)) return {};
  const HostTensor *weight = view.constant(1), *zeros = view.constant(input);
  if (zeros == nullptr || zeros->type != weight->type) return "its weight's zero point is not constant";
  const bool each = columns && zeros->dims == std::vector{weight->dims.back()};
  return each || (zeros->elements() > 0 && is_one(zeros->integers())) ? Refusal()
                                                                      : Refusal("its weight has several zero points");
}

// Signed bytes of an integer product's weight, zero points with them.
Constant weight_of(Lowering& low, const HostTensor& bytes) {
  std::vector<int64_t> zeros{0};
  if (low.has(3)) zeros = low.known(3).integers();
  if (is_one(zeros)) zeros.resize(1);
  return signed_bytes(numbers_of(bytes, {zeros.begin(), zeros.end()}));
}

Refusal check_integer_product(const OpView& view) {
  if (view.rank(0) < 1) return "its operand's rank is unknown or 0";
  if (Refusal no = check_bytes(view, 1); !no.accepted()) return no;
  if (view.constant(1)->dims.size() != 2) return "its weight is no matrix";
  if (Refusal no = check_zeros(view, 3, true); !no.accepted()) return no;
  if (Refusal no = check_operand(view, 2); !no.accepted()) return no;
  return check_sums(view);
}

void convert_integer_product(Lowering& low) {
  const std::vector<int>& in = low.node().inputs;
  // The other way round it would be moved for nothing.
  const Constant weight = low.kept("bytes of MatMulInteger", {in[1], low.has(3) ? in[3] : -1},
                                   [&] { return transposed_bytes(weight_of(low, low.known(1)), 1); });
  low.set(low.add("linear", {low.blob(0)}, {}, {{"weight", weight}}));
}

Refusal check_integer_conv(const OpView& view) {
  if (Refusal no = check_windows(view); !no.accepted()) return no;
  if (Refusal no = check_bytes(view, 1); !no.accepted()) return no;
  if (Refusal no = check_zeros(view, 3, false); !no.accepted()) return no;
  if (Refusal no = check_operand(view, 2); !no.accepted()) return no;
  return check_sums(view);
}

void convert_integer_conv(Lowering& low) {
  const std::vector<int>& in = low.node().inputs;
  const Constant weight = low.kept("bytes of ConvInteger", {in[1], low.has(3) ? in[3] : -1}, [&] {
    HostTensor bytes = low.known(1);
    if (bytes.dims.size() == 3) bytes.dims.insert(bytes.dims.begin() + 2, 1);
    return weight_of(low, bytes);
  });
  low.set(convolved_bytes(low, {{"weight", weight}}));
}

// Where the inputs of a product are that is real in the end.
struct RealPlaces {
  QuantizedInput weight;
  size_t bias;
};
RealPlaces places_of(const HostNode& node) {
  return node.op == "DynamicQuantizeMatMul" ? RealPlaces{{1, 2, 3}, 4} : RealPlaces{{1, 3, 5}, 6};
}

Refusal check_real_product(const OpView& view) {
  const HostNode& node = view.node();
  const RealPlaces at = places_of(node);
  if (view.rank(0) < 1) return "its operand's rank is unknown or 0";
  if (node.op == "MatMulIntegerToFloat") {
    if (Refusal no = check_operand(view, 4); !no.accepted()) return no;
  }
  if (const Refusal no = check_quantized_constant(view.graph(), node, at.weight); !no.accepted()) return no;
  if (Refusal no = check_bytes(view, at.weight.value); !no.accepted()) return no;
  const HostTensor& weight = *view.constant(at.weight.value);
  if (weight.dims.size() != 2) return "its weight is no matrix";
  if (!view.has(at.bias)) return {};
  const HostTensor* bias = view.constant(at.bias);
  const bool plain = bias != nullptr && is_real(bias->type) && bias->dims == std::vector{weight.dims[1]};
  return plain ? Refusal() : Refusal("its bias is no constant list");
}

void convert_real_product(Lowering& low) {
  const HostNode& node = low.node();
  const RealPlaces at = places_of(node);
  std::vector<int> values;
  for (const size_t input : {at.weight.value, at.weight.scale, at.weight.zero_point}) {
    values.push_back(low.has(input) ? node.inputs[input] : -1);
  }
  const Constant weight = low.kept("bytes of " + node.op, std::move(values), [&] {
    const Constant bytes = signed_bytes(low.dequantized(at.weight));
    return bytes == nullptr ? nullptr : transposed_bytes(bytes, 1);
  });
  if (weight == nullptr) throw Error("the scales of its weight are not positive and finite");
  Lowering::Weights weights{{"weight", weight}}, bias;
  if (low.has(at.bias)) bias.emplace_back("bias", low.weight(at.bias));
  if (node.op == "DynamicQuantizeMatMul") {
    weights.insert(weights.end(), bias.begin(), bias.end());
    return low.set(low.add("dynamic_linear", {low.blob(0)}, {}, std::move(weights)));
  }
  const int sums = low.add("linear", {low.blob(0)}, {}, std::move(weights));
  const int real = low.add("binary", {sums, low.blob(2)}, {{"function", "mul"}});
  low.set(bias.empty() ? real : low.add("binary", {real}, {{"function", "add"}}, {{"other", bias[0].second}}));
}

// The zero point has no value of its own: whatever reads it takes steps.
void convert_dynamic_quantize(Lowering& low) {
  const int steps = low.add("dynamic_quantize", {low.blob(0)});
  low.set(steps);
  low.set(steps + 1, 1);
}

constexpr OpEntry dynamic_entries[] = {
    {"DynamicQuantizeLinear", accept, convert_dynamic_quantize, true, Holds::bytes},
    {"MatMulInteger", check_integer_product, convert_integer_product, false, Holds::anything},
    {"ConvInteger", check_integer_conv, convert_integer_conv, false, Holds::anything},
    {"MatMulIntegerToFloat", check_real_product, convert_real_product, false, Holds::bytes, Domain::microsoft},
    {"DynamicQuantizeMatMul", check_real_product, convert_real_product, false, Holds::bytes, Domain::microsoft},
};

}  // namespace

std::span<const OpEntry> dynamic_ops() { return dynamic_entries; }

}  // namespace softneuro::ort
