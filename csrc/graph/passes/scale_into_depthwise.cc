// A factor for each channel of quantized values goes into the weights of a depthwise convolution, which then reads
// bytes.
#include <algorithm>
#include <cmath>

#include "graph/passes/common.h"
#include "graph/passes/passes.h"

namespace softneuro {
namespace {

// By channel what a layer multiplies by; empty if it does something else.
std::vector<double> factors_of(const Layer& layer, const Shape& in, const Shape& out) {
  if (layer.type != "binary" || layer.main_inputs() != 1 || !layer.post.empty() || in != out || in.rank() != 4 ||
      layer.attrs.text("function") != "mul")
    return {};
  const Constant* other = layer.find_weight("other");
  if (other == nullptr || !per_channel((*other)->shape(), out, 1)) return {};
  std::vector<double> factors = reference_weight(layer, "other");
  if (factors.size() == 1) factors.assign(static_cast<size_t>(out[1]), factors[0]);
  const bool whole = std::all_of(factors.begin(), factors.end(), [](double x) { return x > 0 && std::isfinite(x); });
  return whole ? factors : std::vector<double>();
}

}  // namespace

bool scale_into_depthwise(Graph& graph) {
  bool changed = false;
  for (size_t l = 0; l < graph.layers().size(); ++l) {
    Layer& conv = graph.layer(static_cast<int>(l));
    if (conv.type != "conv2d") continue;
    const Layer* before = producer_of(graph, conv.inputs[0]);
    const Shape& in = graph.blob(conv.inputs[0]).desc.shape;
    if (before == nullptr || before->inputs.empty() || conv.attrs.integer("groups", 1) != in[1]) continue;
    const TensorDesc& bytes = graph.blob(before->inputs[0]).desc;
    if (bytes.quantization == nullptr) continue;
    const std::vector<double> channels = factors_of(*before, bytes.shape, in);
    if (channels.empty()) continue;
    const Constant weight = conv.weight("weight");
    const auto outputs = static_cast<size_t>(weight->shape()[0]), each = outputs / channels.size();
    std::vector<double> rows;
    for (size_t row = 0; row < outputs; ++row) rows.push_back(channels[row / each]);
    conv.set_weight("weight", with_row_factors(weight, [rows] { return rows; }));
    conv.inputs[0] = before->inputs[0];
    changed = true;
  }
  return changed;
}

}  // namespace softneuro
