// Several layers that make of each value of one quantized blob another quantized one, by itself: hardswish as it is
// often spelled out, say. All that they do is a table.
#include <algorithm>
#include <map>
#include <set>

#include "graph/fusions.h"
#include "layers/contract/registry.h"
#include "layers/look_up/look_up.h"

namespace softneuro::fusions {
namespace {

constexpr size_t fewest = 3, most = 12;  // layers; of fewer, each quantization has the layer before it

bool is_unsigned(const TensorDesc& desc) { return desc.quantization != nullptr && !desc.quantization->is_signed(); }

bool is_elementwise(const Graph& graph, const Layer& layer) {
  if (layer.outputs.size() > 1 || layer.post.residual || !layer.weights.empty()) return false;
  const Shape& out = graph.blob(layer.output()).desc.shape;
  const bool same_shape = std::all_of(layer.inputs.begin(), layer.inputs.end(),
                                      [&](int blob) { return graph.blob(blob).desc.shape == out; });
  return same_shape && (layer.type == "quantize" || layer.type == "activation" || layer.type == "binary");
}

// The layers, down to `last`, that compute its output from one quantized blob alone: the fewest of them. Empty if there
// are none.
std::set<int> layers_from_one_blob(const Graph& graph, int last, int& from) {
  std::set<int> layers{last};
  const auto& list = graph.layers();
  const auto inputs_of = [&](int layer) -> const std::vector<int>& { return list[static_cast<size_t>(layer)].inputs; };
  std::set<int> open(inputs_of(last).begin(), inputs_of(last).end());
  while (layers.size() <= most) {
    if (open.size() == 1 && layers.size() >= fewest && is_unsigned(graph.blob(*open.begin()).desc)) {
      from = *open.begin();
      return layers;
    }
    // The latest of what is read: nothing between here and the others can come before it.
    const int blob = *std::max_element(open.begin(), open.end(),
                                       [&](int a, int b) { return graph.blob(a).producer < graph.blob(b).producer; });
    const int producer = graph.blob(blob).producer;
    if (producer < 0 || graph.is_output(blob) || !is_elementwise(graph, list[static_cast<size_t>(producer)])) break;
    const std::vector<int> readers = graph.consumers(blob);
    if (!std::all_of(readers.begin(), readers.end(), [&](int reader) { return layers.contains(reader); })) break;
    layers.insert(producer);
    open.erase(blob);
    open.insert(inputs_of(producer).begin(), inputs_of(producer).end());
  }
  return {};
}

// What the layers' own references make of values of a blob.
std::vector<double> values_of(const Graph& graph, const std::set<int>& layers, int from,
                              const std::vector<double>& points) {
  std::map<int, std::vector<double>> values{{from, points}};
  const Shape shape{table_values};
  int last = from;
  for (const int index : layers) {  // ascending: in topological order
    const Layer& layer = graph.layers()[static_cast<size_t>(index)];
    std::vector<RefTensor> in;
    for (const int blob : layer.inputs) in.push_back({shape, values.at(blob).data()});
    last = layer.output();
    std::vector<double>& made = values[last];
    made.resize(points.size());
    const RefTensor out{shape, made.data()};
    run_reference(layer_def(layer.type), layer, in, {&out, 1});
  }
  return values.at(last);
}

Constant constant_of(const std::vector<double>& values) {
  return constant_from(Shape{table_values}, {values.begin(), values.end()});
}

}  // namespace

void byte_function(const Graph& graph, std::vector<Fusion>& fusions) {
  for (int index = 0; index < static_cast<int>(graph.layers().size()); ++index) {
    const Layer& last = graph.layers()[static_cast<size_t>(index)];
    if (last.type != "quantize" || !is_elementwise(graph, last)) continue;
    int from = -1;
    const std::set<int> layers = layers_from_one_blob(graph, index, from);
    if (layers.empty()) continue;
    const Quantization& q = *graph.blob(from).desc.quantization;
    std::vector<double> points;
    for (int byte = 0; byte < table_values; ++byte) {
      points.push_back(static_cast<double>(static_cast<float>(byte - q.zero_points[0]) * q.scales[0]));
    }
    Fusion& fusion = fusions.emplace_back();
    fusion.layers = {layers.begin(), layers.end()};
    fusion.layer.type = "look_up";
    fusion.layer.name = last.name;
    fusion.layer.inputs = {from};
    fusion.layer.outputs = last.outputs;
    fusion.layer.post.quantize = last.post.quantize;
    fusion.layer.set_weight("points", constant_of(points));
    fusion.layer.set_weight("values", constant_of(values_of(graph, layers, from, points)));
  }
}

}  // namespace softneuro::fusions
