#include "graph/fusions/scaled_image.h"

#include <algorithm>

#include "graph/passes/common.h"
#include "layers/contract/registry.h"
#include "layers/image_conv/image_conv.h"

namespace softneuro {
namespace {

// Whether each value becomes another by what its channel says alone, along a line. What lines they are is not asked:
// fusions depend on the structure only.
bool scales_channels(const Graph& graph, const Layer& layer) {
  if (!layer.post.empty()) return false;
  if (layer.type == "scale_shift" || layer.type == "batch_norm") return true;
  if (layer.type != "binary" || layer.main_inputs() != 1) return false;
  const Shape &in = graph.blob(layer.inputs[0]).desc.shape, &out = graph.blob(layer.output()).desc.shape;
  const std::string function = layer.attrs.text("function");
  const bool divides = function == "div" && !layer.attrs.flag("reversed", false);
  if (in != out || !(divides || function == "add" || function == "sub" || function == "mul")) return false;
  const Constant* other = layer.find_weight("other");
  return other == nullptr || per_channel((*other)->shape(), out, 1);
}

// What each byte becomes: the layers' own references say it.
std::vector<float> channel_values(const std::vector<Layer>& chain, int64_t channels) {
  const Shape shape{1, channels, byte_values, 1};
  std::vector<double> values(static_cast<size_t>(shape.elements())), next(values.size());
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i % byte_values);
  for (const Layer& layer : chain) {
    const RefTensor in{shape, values.data()}, out{shape, next.data()};
    run_reference(layer_def(layer.type), layer, {&in, 1}, {&out, 1});
    values.swap(next);
  }
  return {values.begin(), values.end()};
}

}  // namespace

std::optional<ScaledImage> scaled_image(const Graph& graph, int conv) {
  ScaledImage image;
  std::vector<Layer> chain;
  int reader = conv, blob = graph.layers()[static_cast<size_t>(conv)].inputs[0];
  while (chain.empty() || chain.back().type != "cast") {
    const Layer* before = producer_of(graph, blob);
    if (before == nullptr || sole_reader(graph, blob) != reader) return std::nullopt;
    const bool casts = before->type == "cast" && before->post.empty() &&
                       graph.blob(blob).desc.kind == ValueKind::real && is_bytes(graph.blob(before->inputs[0]).desc);
    if (!casts && !scales_channels(graph, *before)) return std::nullopt;
    reader = graph.blob(blob).producer;
    image.layers.push_back(reader);
    chain.push_back(*before);
    blob = before->inputs[0];
  }
  if (graph.blob(blob).desc.shape.rank() != 4) return std::nullopt;
  std::reverse(image.layers.begin(), image.layers.end());
  std::reverse(chain.begin(), chain.end());
  const int64_t channels = graph.blob(blob).desc.shape[1];
  image.values = lazy_constant({channels, byte_values},
                               [chain = std::move(chain), channels] { return channel_values(chain, channels); });
  return image;
}

}  // namespace softneuro
