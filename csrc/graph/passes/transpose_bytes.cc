// A transpose of reals that were bytes moves to where they are bytes, past what scales them: an image that comes with
// its channels last then is one from its first layer on.
#include <algorithm>

#include "graph/passes/common.h"
#include "graph/passes/passes.h"

namespace softneuro {
namespace {

using Perm = std::vector<int64_t>;

// A constant operand with at most one axis of more than one element, as broadcast to the input's transpose.
Constant transposed(const Constant& other, int rank, const Perm& perm) {
  Shape shape;
  for (const int64_t axis : perm) {
    const int own = static_cast<int>(axis) - (rank - other->shape().rank());
    shape.push_back(own < 0 ? 1 : other->shape()[own]);
  }
  return std::make_shared<const ConstantData>(shape, [other] { return other->values(); });
}

// One input and a constant that varies along one axis at most.
bool scales_an_axis(const Graph& graph, const Layer& layer) {
  if (layer.type != "binary" || layer.main_inputs() != 1 || layer.post.residual) return false;
  const Shape &in = graph.blob(layer.inputs[0]).desc.shape, &out = graph.blob(layer.output()).desc.shape;
  const Constant* other = layer.find_weight("other");
  if (in != out) return false;
  if (other == nullptr) return true;
  const Shape& shape = (*other)->shape();
  return shape.rank() <= out.rank() &&
         std::count_if(shape.begin(), shape.end(), [](int64_t size) { return size != 1; }) <= 1;
}

bool is_cast_of_bytes(const Graph& graph, const Layer& layer) {
  return layer.type == "cast" && layer.post.empty() && graph.blob(layer.output()).desc.kind == ValueKind::real &&
         fits(graph.blob(layer.inputs[0]).desc, f32_nchw.with(DType::uint8)).accepted();
}

bool move(Graph& graph, int index) {
  const Layer transpose = graph.layers()[static_cast<size_t>(index)];
  std::vector<Layer> passed;  // from the last to the first
  int blob = transpose.inputs[0];
  while (passed.empty() || passed.back().type != "cast") {
    const Layer* before = producer_of(graph, blob);
    if (before == nullptr || sole_reader(graph, blob) < 0) return false;
    if (!is_cast_of_bytes(graph, *before) && !scales_an_axis(graph, *before)) return false;
    passed.push_back(*before);
    blob = before->inputs[0];
  }
  const Perm& perm = transpose.attrs.integers("perm");
  Layer first = transpose;
  first.post = {};
  first.inputs = {blob};
  int current = graph.insert_layer(std::move(first));
  for (auto layer = passed.rbegin(); layer != passed.rend(); ++layer) {
    layer->inputs = {current};
    if (const Constant* other = layer->find_weight("other")) {
      layer->set_weight("other", transposed(*other, static_cast<int>(perm.size()), perm));
    }
    current = graph.insert_layer(std::move(*layer));
  }
  retire(graph, index, current);
  return true;
}

}  // namespace

bool transpose_bytes(Graph& graph) {
  bool changed = false;
  const size_t count = graph.layers().size();
  for (size_t l = 0; l < count; ++l) {
    const Layer& layer = graph.layers()[l];
    if (layer.type == "transpose" && layer.post.empty()) changed |= move(graph, static_cast<int>(l));
  }
  return changed;
}

}  // namespace softneuro
