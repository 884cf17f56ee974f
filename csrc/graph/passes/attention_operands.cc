// Attention reads simpler operands: a mask of 0 and -inf that is made of booleans is these booleans, and keys and
// values that are repeated for each head that shares them are read once.
#include <algorithm>
#include <limits>
#include <vector>

#include "graph/passes/common.h"
#include "graph/passes/passes.h"

namespace softneuro {
namespace {

// Through reshapes that put axes of one element in front, or take them away there.
int before_leading_ones(const Graph& graph, int blob) {
  for (const Layer* layer = producer_of(graph, blob); layer != nullptr; layer = producer_of(graph, blob)) {
    if (layer->type != "reshape" || !layer->post.empty()) break;
    const auto significant = [&](int id) {
      std::vector<int64_t> sizes(graph.blob(id).desc.shape.begin(), graph.blob(id).desc.shape.end());
      sizes.erase(sizes.begin(), std::find_if(sizes.begin(), sizes.end(), [](int64_t size) { return size != 1; }));
      return sizes;
    };
    if (significant(layer->inputs[0]) != significant(blob)) break;
    blob = layer->inputs[0];
  }
  return blob;
}

// Whether a blob has one number everywhere.
bool is_number(const Graph& graph, int blob, float number) {
  const Constant value = constant_of(graph, blob);
  if (value == nullptr || value->elements() > 4096) return false;
  const ConstantData::Values values = value->values();
  return std::all_of(values.get(), values.get() + value->elements(), [&](float one) { return one == number; });
}

Shape with_leading_ones(const Shape& shape) {
  Shape full;
  for (int axis = shape.rank(); axis < 4; ++axis) full.push_back(1);
  for (const int64_t size : shape) full.push_back(size);
  return full;
}

bool keep_by_booleans(Graph& graph, int index) {
  const Layer& layer = graph.layers()[static_cast<size_t>(index)];
  if (layer.main_inputs() < 4 || graph.blob(layer.inputs[3]).desc.shape.rank() != 4) return false;  // it has no mask
  if (layer.attrs.text("mask", "add") != "add") return false;
  const Layer* where = producer_of(graph, before_leading_ones(graph, layer.inputs[3]));
  if (where == nullptr || where->type != "where" || !where->post.empty()) return false;
  constexpr float none = -std::numeric_limits<float>::infinity();
  const bool keeps = is_number(graph, where->inputs[1], 0) && is_number(graph, where->inputs[2], none);
  const bool drops = is_number(graph, where->inputs[1], none) && is_number(graph, where->inputs[2], 0);
  int mask = where->inputs[0];
  if ((!keeps && !drops) || graph.blob(mask).desc.shape.rank() > 4) return false;
  const Shape shape = with_leading_ones(graph.blob(mask).desc.shape), wanted = graph.blob(layer.inputs[3]).desc.shape;
  if (shape != wanted) return false;
  const std::string name = layer.name;
  if (drops) {
    Layer opposite;
    opposite.name = name, opposite.type = "logical", opposite.inputs = {mask};
    opposite.attrs.set("function", std::string("not"));
    mask = graph.insert_layer(std::move(opposite));
  }
  mask = with_same_elements(graph, mask, shape, name);
  Layer& changed = graph.layer(index);
  changed.inputs[3] = mask;
  changed.attrs.set("mask", std::string("keep"));
  return true;
}

// x[B,G,N,D] of what is x[B,G,1,N,D], repeated R times along the third axis, and then [B,G*R,N,D]; -1 if it is not
// that.
int before_repetition(const Graph& graph, int blob) {
  const Layer* joined = producer_of(graph, blob);
  if (joined == nullptr || joined->type != "reshape" || !joined->post.empty()) return -1;
  const Layer* repeated = producer_of(graph, joined->inputs[0]);
  if (repeated == nullptr || repeated->type != "expand" || !repeated->post.empty()) return -1;
  const Shape &out = graph.blob(blob).desc.shape, &wide = graph.blob(joined->inputs[0]).desc.shape;
  const Shape& narrow = graph.blob(repeated->inputs[0]).desc.shape;
  if (out.rank() != 4 || wide.rank() != 5 || narrow.rank() != 5 || narrow[2] != 1) return -1;
  for (const int axis : {0, 1, 3, 4}) {
    if (narrow[axis] != wide[axis]) return -1;
  }
  return out == Shape{wide[0], wide[1] * wide[2], wide[3], wide[4]} ? repeated->inputs[0] : -1;
}

bool share_heads(Graph& graph, int index) {
  const std::vector<int> inputs = graph.layers()[static_cast<size_t>(index)].inputs;
  const std::string name = graph.layers()[static_cast<size_t>(index)].name;
  const int k = before_repetition(graph, inputs[1]), v = before_repetition(graph, inputs[2]);
  if (k < 0 || v < 0 || graph.blob(k).desc.shape[1] != graph.blob(v).desc.shape[1]) return false;
  const auto of_rank_4 = [&](int blob) {
    const Shape shape = graph.blob(blob).desc.shape;
    return with_same_elements(graph, blob, {shape[0], shape[1], shape[3], shape[4]}, name);
  };
  const int keys = of_rank_4(k), values = of_rank_4(v);
  graph.layer(index).inputs[1] = keys;
  graph.layer(index).inputs[2] = values;
  return true;
}

}  // namespace

bool attention_operands(Graph& graph) {
  bool changed = false;
  for (size_t l = 0, count = graph.layers().size(); l < count; ++l) {
    if (graph.layers()[l].type != "attention") continue;
    changed |= keep_by_booleans(graph, static_cast<int>(l));
    changed |= share_heads(graph, static_cast<int>(l));
  }
  return changed;
}

}  // namespace softneuro
