// The sum of two blobs, one of which comes from a layer that can add the other while it writes its result.
#include "graph/passes/common.h"
#include "graph/passes/passes.h"

namespace softneuro {
namespace {

// How well a blob's producer would do as the one that adds: higher is better, -1 not at all.
int fitness(const Graph& graph, int blob, int sum) {
  const Layer* producer = producer_of(graph, blob);
  if (producer == nullptr || !accepts_residual(producer->type) || !producer->post.empty()) return -1;
  if (sole_reader(graph, blob) != sum) return -1;
  // An element-wise layer gains less than one that has arithmetic to hide the reading; of two, the later one has to
  // wait for the other anyway.
  const int layers = static_cast<int>(graph.layers().size());
  return graph.blob(blob).producer + (producer->type == "binary" ? 0 : layers);
}

// Returns what makes a blob under another shape, if that is a product that nobody else reads; else -1. Sums are of
// elements, whatever their shape.
int before_reshape(const Graph& graph, int blob, int sum) {
  const Layer* layer = producer_of(graph, blob);
  if (layer == nullptr || layer->type != "reshape" || !layer->post.empty() || sole_reader(graph, blob) != sum)
    return -1;
  const int before = layer->inputs[0], reshape = graph.blob(blob).producer;
  const Layer* product = producer_of(graph, before);
  const bool fits = product != nullptr && (product->type == "linear" || product->type == "matmul");
  return fits && fitness(graph, before, reshape) >= 0 ? before : -1;
}

// A product adds what is added behind a reshape.
bool absorb_before_reshape(Graph& graph, int sum) {
  for (const size_t side : {size_t{0}, size_t{1}}) {
    const Layer layer = graph.layers()[static_cast<size_t>(sum)];
    const int made = before_reshape(graph, layer.inputs[side], sum);
    if (made < 0) continue;
    const Shape shape = graph.blob(made).desc.shape, whole = graph.blob(layer.output()).desc.shape;
    const int other = with_same_elements(graph, layer.inputs[1 - side], shape, layer.name);
    Layer& producer = graph.layer(graph.blob(made).producer);
    producer.inputs.push_back(other);
    producer.post = {true, layer.post.activation};
    retire(graph, sum, with_same_elements(graph, made, whole, layer.name));
    return true;
  }
  return false;
}

}  // namespace

bool absorb_residual(Graph& graph) {
  bool changed = false;
  for (size_t l = 0; l < graph.layers().size(); ++l) {
    const Layer& layer = graph.layers()[l];
    const int sum = static_cast<int>(l);
    if (layer.type != "binary" || layer.inputs.size() != 2 || layer.post.residual) continue;
    // Either may be quantized: they are reals all the same.
    const bool alike = graph.blob(layer.inputs[0]).desc.shape == graph.blob(layer.inputs[1]).desc.shape;
    if (layer.attrs.text("function") != "add" || !alike) continue;
    const int first = fitness(graph, layer.inputs[0], sum), second = fitness(graph, layer.inputs[1], sum);
    if (first < 0 && second < 0) {
      changed |= absorb_before_reshape(graph, sum);
      continue;
    }
    const int blob = layer.inputs[first > second ? 0 : 1], other = layer.inputs[first > second ? 1 : 0];
    Layer& producer = graph.layer(graph.blob(blob).producer);
    producer.inputs.push_back(other);
    producer.post = {true, layer.post.activation};
    retire(graph, sum, blob);
    changed = true;
  }
  return changed;
}

}  // namespace softneuro
