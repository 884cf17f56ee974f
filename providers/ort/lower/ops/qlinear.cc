// Ops that carry the scales of their operands and of their result: the op on reals, then quantized.
#include <algorithm>

#include "base/text.h"
#include "providers/ort/lower/ops/ops.h"
#include "providers/ort/lower/quantized_constants.h"

namespace softneuro::ort {
namespace {

constexpr QLinearOp forms[] = {
    {"QLinearConv", "Conv", 0, 2, 6, 8},
    {"QLinearMatMul", "MatMul", 0, 2, 6},
    {"QGemm", "Gemm", 0, 2, 7, 6},
    {"QLinearAdd", "Add", 0, 2, 6},
    {"QLinearMul", "Mul", 0, 2, 6},
    {"QLinearConcat", "Concat", 2, 0, 0},
    {"QLinearAveragePool", "AveragePool", 0, 1, 3},
    {"QLinearGlobalAveragePool", "GlobalAveragePool", 0, 1, 3},
    {"QLinearSigmoid", "Sigmoid", 0, 1, 3},
    {"QLinearLeakyRelu", "LeakyRelu", 0, 1, 3},
    {"QLinearSoftmax", "Softmax", 0, 1, 3},
};

// The op on reals, over the operands as they come.
HostNode real_node(const HostNode& node) {
  const QLinearOp& form = *find_qlinear(node);
  HostNode real = node;
  real.op = form.real, real.domain.clear();
  real.since_version = static_cast<int>(node.integer("opset", 13));  // of Softmax; others have not changed since then
  real.inputs.clear();
  for (const QuantizedInput& input : quantized_inputs(node)) real.inputs.push_back(node.inputs[input.value]);
  if (form.bias >= 0 && node.has_input(static_cast<size_t>(form.bias))) {
    real.inputs.push_back(node.inputs[static_cast<size_t>(form.bias)]);
  }
  return real;
}

Refusal check_qlinear(const OpView& view) {
  const HostNode& node = view.node();
  const QLinearOp& form = *find_qlinear(node);
  if (form.bias >= 0 && node.has_input(static_cast<size_t>(form.bias))) {
    const HostTensor* bias = view.constant(static_cast<size_t>(form.bias));
    if (bias == nullptr || bias->type != DType::int32) return "its bias is not constant integers of 32 bits";
  }
  const HostNode real = real_node(node);
  return find_op(real)->check(view.as(real));
}

// The scales of sums of products.
std::vector<double> sum_scales(Lowering& low) {
  const std::vector<float> a = low.known(1).reals(), b = low.known(4).reals();
  std::vector<double> products;
  for (const float scale : b) products.push_back(static_cast<double>(a[0]) * static_cast<double>(scale));
  if (low.node().op == "QGemm") {
    for (double& product : products) product *= static_cast<double>(low.node().real("alpha", 1));
  }
  return products;
}

void convert_qlinear(Lowering& low) {
  const HostNode& node = low.node();
  const QLinearOp& form = *find_qlinear(node);
  HostNode real = real_node(node);
  size_t place = 0;
  for (const QuantizedInput& input : quantized_inputs(node)) {
    if (low.is_known(input.value)) real.inputs[place] = low.added_value(low.dequantized(input));
    ++place;
  }
  if (place < real.inputs.size()) {
    const auto bias = static_cast<size_t>(form.bias);
    const auto make = [&] { return scaled_integers(low.known(bias), sum_scales(low)); };
    const std::string what = "bias of " + node.op + " by " + exact_number(node.real("alpha", 1));
    real.inputs[place] = low.added_value(low.kept(what, {node.inputs[bias], node.inputs[1], node.inputs[4]}, make));
  }
  if (node.integer("channels_last", 0) != 0) return convert_channels_last(low, std::move(real));
  low.convert_as(real);
}

constexpr OpEntry entry(std::string_view op, bool moves_only, Domain domain) {
  return {op, check_qlinear, convert_qlinear, moves_only, Holds::quantized, domain};
}
constexpr OpEntry qlinear_entries[] = {
    entry("QLinearConv", false, Domain::both),
    entry("QLinearMatMul", false, Domain::onnx),
    entry("QGemm", false, Domain::microsoft),
    entry("QLinearAdd", false, Domain::microsoft),
    entry("QLinearMul", false, Domain::microsoft),
    entry("QLinearConcat", true, Domain::microsoft),
    entry("QLinearAveragePool", false, Domain::microsoft),
    entry("QLinearGlobalAveragePool", false, Domain::microsoft),
    entry("QLinearSigmoid", false, Domain::microsoft),
    entry("QLinearLeakyRelu", false, Domain::microsoft),
    entry("QLinearSoftmax", false, Domain::microsoft),
};

}  // namespace

const QLinearOp* find_qlinear(const HostNode& node) {
  const auto found = std::find_if(std::begin(forms), std::end(forms), [&](const auto& f) { return f.op == node.op; });
  return found == std::end(forms) || find_op(node) == nullptr ? nullptr : found;
}

std::span<const OpEntry> qlinear_ops() { return qlinear_entries; }

}  // namespace softneuro::ort
