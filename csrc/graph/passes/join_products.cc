// Queries, keys and values that are products of one blob become one product: it is read once, and what attention reads
// lies side by side. Attention, and what turns its operands, read such parts as they lie, so nothing is copied.
#include <algorithm>
#include <map>
#include <vector>

#include "graph/passes/common.h"
#include "graph/passes/passes.h"

namespace softneuro {
namespace {

// Whether a blob goes into an attention, what turns its operands or its cache, and nowhere else, through moves that are
// views.
bool feeds_attention(const Graph& graph, int blob) {
  while (true) {
    const int reader = sole_reader(graph, blob);
    if (reader < 0) return false;
    const Layer& layer = graph.layers()[static_cast<size_t>(reader)];
    if (layer.type == "attention") return true;
    if (layer.type == "rotary" && layer.inputs[0] == blob) return true;
    if (layer.type == "put" && layer.inputs[1] == blob) return true;
    const bool moves = layer.type == "reshape" || layer.type == "transpose";
    if (!moves || !layer.post.empty()) return false;
    const std::vector<int64_t>* perm = layer.type == "transpose" ? &layer.attrs.integers("perm") : nullptr;
    if (perm != nullptr && perm->back() != static_cast<int64_t>(perm->size()) - 1) return false;
    blob = layer.output();
  }
}

bool is_plain_product(const Layer& layer) {
  if (layer.type != "linear" || !layer.post.empty()) return false;
  const Constant& weight = layer.weight("weight");
  return weight->desc().quantization == nullptr && weight->shape().elements() > 0;
}

// The same weights, one behind the other along axis 0; zeros for a bias that is not there.
Constant behind_each_other(const std::vector<const Layer*>& layers, std::string_view role, const Shape& shape) {
  struct Part {
    Constant values;
    int64_t elements;
  };
  std::vector<Part> parts;
  bool any = false;
  for (const Layer* layer : layers) {
    const Constant* own = layer->find_weight(role);
    any = any || own != nullptr;
    const int64_t rows = layer->weight("weight")->shape()[0];
    parts.push_back({own != nullptr ? *own : nullptr, own != nullptr ? (*own)->elements() : rows});
  }
  if (!any) return nullptr;
  return lazy_constant(shape, [parts] {
    std::vector<float> made;
    for (const Part& part : parts) {
      if (part.values == nullptr) {
        made.resize(made.size() + static_cast<size_t>(part.elements));
        continue;
      }
      const ConstantData::Values values = part.values->values();
      made.insert(made.end(), values.get(), values.get() + part.elements);
    }
    return made;
  });
}

void join_layers(Graph& graph, const std::vector<int>& indices) {
  std::vector<const Layer*> layers;
  int64_t rows = 0;
  for (const int index : indices) {
    layers.push_back(&graph.layers()[static_cast<size_t>(index)]);
    rows += layers.back()->weight("weight")->shape()[0];
  }
  const int64_t columns = layers[0]->weight("weight")->shape()[1];
  Layer joint;
  joint.name = layers[0]->name, joint.type = "linear", joint.inputs = layers[0]->inputs;
  joint.set_weight("weight", behind_each_other(layers, "weight", {rows, columns}));
  joint.set_weight("bias", behind_each_other(layers, "bias", {rows}));
  std::vector<int64_t> counts;
  std::vector<std::string> names;
  for (const Layer* layer : layers) {
    counts.push_back(layer->weight("weight")->shape()[0]);
    names.push_back(layer->name);
  }
  const int made = graph.insert_layer(std::move(joint));
  const int64_t axis = graph.blob(made).desc.shape.rank() - 1;
  int64_t start = 0;
  for (size_t i = 0; i < indices.size(); start += counts[i], ++i) {
    Layer part;
    part.name = names[i], part.type = "slice", part.inputs = {made};
    part.attrs.set("axis", axis);
    part.attrs.set("start", start);
    part.attrs.set("end", start + counts[i]);
    retire(graph, indices[i], graph.insert_layer(std::move(part)));
  }
}

}  // namespace

bool join_products(Graph& graph) {
  std::map<int, std::vector<int>> by_input;
  for (size_t l = 0; l < graph.layers().size(); ++l) {
    const Layer& layer = graph.layers()[l];
    if (is_plain_product(layer) && feeds_attention(graph, layer.output())) {
      by_input[layer.inputs[0]].push_back(static_cast<int>(l));
    }
  }
  bool changed = false;
  for (const auto& [blob, indices] : by_input) {
    if (indices.size() < 2) continue;
    join_layers(graph, indices);
    changed = true;
  }
  return changed;
}

}  // namespace softneuro
