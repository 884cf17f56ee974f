#include "tune/calibrate/taps.h"

#include <set>
#include <string>
#include <utility>

#include "layers/contract/registry.h"
#include "layers/host/host.h"

namespace softneuro {
namespace {

// What is updated in place has to be the caller's own memory.
std::set<int> updated_blobs(const Graph& graph) {
  std::set<int> blobs;
  for (const Layer& layer : graph.layers()) {
    const LayerDef& def = layer_def(layer.type);
    for (size_t k = 0; k < layer.outputs.size(); ++k) {
      const int input = updated_input(def, layer, static_cast<int>(k));
      if (input < 0) continue;
      blobs.insert(layer.inputs[static_cast<size_t>(input)]);
      blobs.insert(layer.outputs[k]);
    }
  }
  return blobs;
}

Schema at_border(const TensorDesc& desc, const Schema& schema, bool natural) {
  return natural ? natural_schema(desc) : schema;
}

}  // namespace

bool is_open(const Graph& graph, int blob) {
  const TensorDesc& desc = graph.blob(blob).desc;
  return desc.kind == ValueKind::real && desc.quantization == nullptr && desc.shape.elements() > 0;
}

Tapped tap(const Graph& graph, const std::shared_ptr<const Watch>& watch, bool natural) {
  Tapped tapped;
  tapped.blobs.resize(graph.blobs().size());
  const std::set<int> updated = updated_blobs(graph);
  std::vector<int> now(graph.blobs().size(), -1);  // by blob: what its readers read
  const auto at = [](int index) { return static_cast<size_t>(index); };
  const auto pass = [&](int blob, int made, bool watched) {
    now[at(blob)] = made;
    if (!watched || updated.contains(blob)) return;
    tapped.blobs[at(blob)] = true;
    HostOp host;
    host.outs = {graph.blob(blob).desc};
    host.run = [watch, blob](std::span<const TensorView> in, std::span<const TensorView> outs) {
      (*watch)(blob, in[0], outs[0]);
    };
    Layer layer = host_layer("watched " + graph.blob(blob).name, "watch", std::move(host));
    layer.inputs = {made};
    now[at(blob)] = tapped.graph.add_layer(std::move(layer));
  };
  for (size_t k = 0; k < graph.inputs().size(); ++k) {
    const Blob& input = graph.blob(graph.inputs()[k]);
    const Schema schema = at_border(input.desc, graph.input_schemas()[k], natural);
    pass(graph.inputs()[k], tapped.graph.add_input(input.name, input.desc, schema), input.desc.shape.elements() > 0);
  }
  for (Layer layer : graph.layers()) {
    const std::vector<int> outputs = layer.outputs;
    for (int& input : layer.inputs) input = now[at(input)];
    const bool constant = layer.type == "constant";
    tapped.layers.push_back(static_cast<int>(tapped.graph.layers().size()));
    const int first = tapped.graph.add_layer(std::move(layer));
    for (size_t k = 0; k < outputs.size(); ++k)
      pass(outputs[k], first + static_cast<int>(k), !constant && is_open(graph, outputs[k]));
  }
  for (size_t k = 0; k < graph.outputs().size(); ++k) {
    const int output = graph.outputs()[k];
    tapped.graph.add_output(now[at(output)], at_border(graph.blob(output).desc, graph.output_schemas()[k], natural));
  }
  return tapped;
}

}  // namespace softneuro
