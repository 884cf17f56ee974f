// A clamp of bytes that a layer's results become moves to where they are sums: what it lets pass are steps already, and
// so it may as well come before they are rounded.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "graph/passes/common.h"
#include "graph/passes/passes.h"
#include "layers/activation/activation.h"

namespace softneuro {
namespace {

bool is_quantized(const Graph& graph, int blob) { return graph.blob(blob).desc.quantization != nullptr; }

constexpr int64_t most_numbers = 1 << 16;  // that are looked at

bool are_finite(const ConstantData& constant) {
  if (const Quantization* q = constant.desc().quantization.get()) {
    return std::all_of(q->scales.begin(), q->scales.end(), [](float scale) { return std::isfinite(scale); });
  }
  if (constant.elements() > most_numbers) return false;
  const std::vector<double> numbers = constant.doubles();
  return std::all_of(numbers.begin(), numbers.end(), [](double number) { return std::isfinite(number); });
}

// Others may have no number as a result of finite ones: roots of negative ones, quotients of zeros.
bool sums_or_multiplies(const Layer& layer) {
  if (layer.type != "binary") return true;
  const std::string& function = layer.attrs.text("function");
  return function == "add" || function == "sub" || function == "mul";
}

// Whether the layer's sums cannot be NaN, which a quantization makes the least step and a clamp before it would keep.
bool takes_clamp(const Graph& graph, const Layer& layer) {
  return accepts_activation(layer.type) && sums_or_multiplies(layer) &&
         layer.post.activation.kind == ActivationKind::none && layer.post.quantize == nullptr &&
         std::all_of(layer.inputs.begin(), layer.inputs.end(), [&](int blob) { return is_quantized(graph, blob); }) &&
         std::all_of(layer.weights.begin(), layer.weights.end(),
                     [](const auto& own) { return are_finite(*own.second); });
}

}  // namespace

bool clamp_before_quantize(Graph& graph) {
  bool changed = false;
  for (size_t l = 0; l < graph.layers().size(); ++l) {
    const Layer& clamp = graph.layers()[l];
    if (clamp.type != "activation" || !clamp.post.empty() || !is_quantized(graph, clamp.output())) continue;
    const int rounded = clamp.inputs[0];
    const Layer* quantize = producer_of(graph, rounded);
    if (quantize == nullptr || quantize->type != "quantize" || quantize->post.activation.kind != ActivationKind::none ||
        sole_reader(graph, rounded) != static_cast<int>(l))
      continue;
    const int sums = quantize->inputs[0];
    const Layer* layer = producer_of(graph, sums);
    if (layer == nullptr || !takes_clamp(graph, *layer) || sole_reader(graph, sums) != graph.blob(rounded).producer)
      continue;
    graph.layer(graph.blob(sums).producer).post.activation = activation_params(clamp);
    retire(graph, static_cast<int>(l), rounded);
    changed = true;
  }
  return changed;
}

}  // namespace softneuro
