// Products of tensors that are quantized in the run. Inside, DynamicQuantizeLinear is nothing: layers that read what it
// makes are given what it was made of, and find scale and zero point themselves. The scale that it tells is 1.
#include <algorithm>

#include "providers/ort/lower/ops/ops.h"
#include "providers/ort/lower/quantized_constants.h"

namespace softneuro::ort {
namespace {

// Where the inputs of a product are; -1: it has none.
struct DynamicPlaces {
  QuantizedInput weight;
  size_t bias;
};
DynamicPlaces places_of(const HostNode& node) {
  return node.op == "DynamicQuantizeMatMul" ? DynamicPlaces{{1, 2, 3}, 4} : DynamicPlaces{{1, 3, 5}, 6};
}

bool is_made_by_one(const OpView& view) {
  const std::vector<int>& in = view.node().inputs;
  const std::vector<int> wanted{in[0], in[2], in.size() > 4 ? in[4] : -1};
  const auto& nodes = view.graph().nodes;
  return std::any_of(nodes.begin(), nodes.end(),
                     [&](const HostNode& node) { return is_dynamic_quantize(node) && node.outputs == wanted; });
}

Refusal check_product(const OpView& view) {
  const HostNode& node = view.node();
  const DynamicPlaces at = places_of(node);
  if (view.rank(0) < 1) return "its operand's rank is unknown or 0";
  if (node.op == "MatMulIntegerToFloat" && !is_made_by_one(view)) return "its operand is not quantized in the run";
  if (const Refusal no = check_quantized_constant(view.graph(), node, at.weight); !no.accepted()) return no;
  const HostTensor& weight = *view.constant(at.weight.value);
  if (weight.dims.size() != 2) return "its weight is no matrix";
  if (weight.type != DType::int8 && weight.type != DType::uint8) return "its weight is not of eight bits";
  if (!view.has(at.bias)) return {};
  const HostTensor* bias = view.constant(at.bias);
  const bool plain = bias != nullptr && is_real(bias->type) && bias->dims == std::vector{weight.dims[1]};
  return plain ? Refusal() : Refusal("its bias is no constant list");
}

void convert_product(Lowering& low) {
  const HostNode& node = low.node();
  const DynamicPlaces at = places_of(node);
  const auto make = [&] {
    // The other way round it would be moved for nothing.
    const Constant bytes = signed_bytes(low.dequantized(at.weight));
    return bytes == nullptr ? nullptr : transposed_bytes(bytes, 1);
  };
  std::vector<int> values;
  for (const size_t input : {at.weight.value, at.weight.scale, at.weight.zero_point}) {
    values.push_back(low.has(input) ? node.inputs[input] : -1);
  }
  const Constant weight = low.kept("bytes of " + node.op, std::move(values), make);
  if (weight == nullptr) throw Error("the scales of its weight are not positive and finite");
  Lowering::Weights weights{{"weight", weight}};
  if (low.has(at.bias)) weights.emplace_back("bias", low.weight(at.bias));
  low.set(low.add("dynamic_linear", {low.blob(0)}, {}, std::move(weights)));
}

void convert_dynamic_quantize(Lowering& low) {
  low.set(low.blob(0));
  low.set(tensor_of({}, std::vector<float>{1}), 1);
}

constexpr OpEntry dynamic_entries[] = {
    {"DynamicQuantizeLinear", accept, convert_dynamic_quantize, true, Holds::bytes},
    {"MatMulIntegerToFloat", check_product, convert_product, false, Holds::bytes, Domain::microsoft},
    {"DynamicQuantizeMatMul", check_product, convert_product, false, Holds::bytes, Domain::microsoft},
};

}  // namespace

std::span<const OpEntry> dynamic_ops() { return dynamic_entries; }

}  // namespace softneuro::ort
