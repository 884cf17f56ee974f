// Transposes meet and cancel: two in a row become one, and one moves past element-wise layers where that brings it to
// another, or makes one of two.
#include <algorithm>

#include "graph/passes/common.h"
#include "graph/passes/passes.h"

namespace softneuro {
namespace {

using Perm = std::vector<int64_t>;

bool is_transpose(const Layer* layer) { return layer != nullptr && layer->type == "transpose" && layer->post.empty(); }

const Perm& perm_of(const Layer& layer) { return layer.attrs.integers("perm"); }

// The permutation of `first`, then `second`.
Perm composed(const Perm& first, const Perm& second) {
  Perm result;
  for (int64_t axis : second) result.push_back(first[static_cast<size_t>(axis)]);
  return result;
}

bool keeps_order(const Perm& perm, const Shape& shape) {
  int64_t last = -1;
  for (int64_t axis : perm) {
    if (shape[static_cast<int>(axis)] == 1) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

// Result and input have one shape, every element depends on its own place only, and the axes have no meaning.
bool is_elementwise(const Graph& graph, const Layer& layer) {
  if (layer.inputs.size() != 1 || layer.post.residual) return false;
  if (layer.type == "activation") return true;
  return layer.type == "binary" && (layer.find_weight("other") == nullptr ||
                                    ((*layer.find_weight("other"))->elements() == 1 &&
                                     graph.blob(layer.output()).desc == graph.blob(layer.inputs[0]).desc));
}

bool compose_with_producer(Graph& graph, int index) {
  Layer& layer = graph.layer(index);
  const Layer* before = producer_of(graph, layer.inputs[0]);
  if (!is_transpose(before)) return false;
  layer.attrs.set("perm", composed(perm_of(*before), perm_of(layer)));
  layer.inputs[0] = before->inputs[0];
  return true;
}

// A copy of a layer that reads other blobs.
int insert_like(Graph& graph, Layer layer, std::vector<int> inputs) {
  layer.inputs = std::move(inputs);
  return graph.insert_layer(std::move(layer));
}

// transpose -> element-wise layers -> inverse transpose, with no other reader in between: both transposes go.
bool cancel_around_elementwise(Graph& graph, int index) {
  const Layer& last = graph.layers()[static_cast<size_t>(index)];
  std::vector<int> between;  // from the last to the first
  int blob = last.inputs[0];
  const Layer* layer = producer_of(graph, blob);
  while (layer != nullptr && is_elementwise(graph, *layer) && sole_reader(graph, blob) >= 0) {
    between.push_back(graph.blob(blob).producer);
    blob = layer->inputs[0];
    layer = producer_of(graph, blob);
  }
  if (between.empty() || !is_transpose(layer) || sole_reader(graph, blob) < 0) return false;
  const int source = layer->inputs[0];
  if (!keeps_order(composed(perm_of(*layer), perm_of(last)), graph.blob(source).desc.shape)) return false;
  const Layer first = *layer, final = last;
  int current = source;
  for (auto it = between.rbegin(); it != between.rend(); ++it)
    current = insert_like(graph, graph.layers()[static_cast<size_t>(*it)], {current});
  // What is left of the two only moves axes of size one, or nothing.
  Layer rest = final;
  rest.attrs.set("perm", composed(perm_of(first), perm_of(final)));
  retire(graph, index, insert_like(graph, rest, {current}));
  for (int dead : between) retire(graph, dead, graph.layers()[static_cast<size_t>(dead)].output());
  return true;
}

// Two blobs transposed alike and then combined: combined first, one transpose is enough.
bool join(Graph& graph, int index) {
  const Layer& layer = graph.layers()[static_cast<size_t>(index)];
  if (layer.type != "binary" || layer.inputs.size() != 2 || layer.post.residual) return false;
  const int a = layer.inputs[0], b = layer.inputs[1];
  const Layer *left = producer_of(graph, a), *right = producer_of(graph, b);
  if (!is_transpose(left) || !is_transpose(right) || perm_of(*left) != perm_of(*right) ||
      graph.blob(a).desc != graph.blob(b).desc || sole_reader(graph, a) < 0 || sole_reader(graph, b) < 0)
    return false;
  Layer transpose = *left;
  const std::vector<int> sources{left->inputs[0], right->inputs[0]};
  const int combined = insert_like(graph, layer, sources);
  retire(graph, index, insert_like(graph, transpose, {combined}));
  return true;
}

}  // namespace

bool sink_transpose(Graph& graph) {
  bool changed = false;
  const size_t count = graph.layers().size();
  for (size_t l = 0; l < count; ++l) {
    const int index = static_cast<int>(l);
    if (is_transpose(&graph.layers()[l]))
      changed |= compose_with_producer(graph, index) || cancel_around_elementwise(graph, index);
    else
      changed |= join(graph, index);
  }
  return changed;
}

}  // namespace softneuro
