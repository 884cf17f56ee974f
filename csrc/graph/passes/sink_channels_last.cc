// Transposes of bytes that put channels last move behind what does not ask where they are. There they meet their
// inverses, which files have that were written channel by channel for integers, and what lies between computes with
// channels first again.
#include <algorithm>

#include "graph/passes/common.h"
#include "graph/passes/passes.h"

namespace softneuro {
namespace {

using Perm = std::vector<int64_t>;

bool puts_channels_last(const Layer* layer) {
  if (layer == nullptr || layer->type != "transpose" || !layer->post.empty()) return false;
  const Perm& perm = layer->attrs.integers("perm");
  const auto rank = static_cast<int64_t>(perm.size());
  if (rank < 3 || perm.back() != 1) return false;
  for (int64_t axis = 0; axis + 1 < rank; ++axis) {
    if (perm[static_cast<size_t>(axis)] != (axis == 0 ? 0 : axis + 1)) return false;
  }
  return true;
}

// Bytes, or what one layer has made of them.
bool comes_of_bytes(const Graph& graph, int blob) {
  const auto is_quantized = [&](int id) { return graph.blob(id).desc.quantization != nullptr; };
  const Layer* maker = producer_of(graph, blob);
  return is_quantized(blob) ||
         (maker != nullptr && std::any_of(maker->inputs.begin(), maker->inputs.end(), is_quantized));
}

// With axes in the order before the transpose; null where they cannot be put so.
Constant untransposed(const Constant& other, const Perm& perm) {
  const Shape& from = other->shape();
  if (from.elements() == 1) return other;
  if (std::count_if(from.begin(), from.end(), [](int64_t size) { return size != 1; }) > 1) return nullptr;
  Shape to(Perm(perm.size(), 1));
  const int missing = static_cast<int>(perm.size()) - from.rank();
  for (int axis = 0; axis < from.rank(); ++axis)
    to[static_cast<int>(perm[static_cast<size_t>(axis + missing)])] = from[axis];
  return std::make_shared<const ConstantData>(to, [other] { return other->values(); });
}

// The layer as it is before the transposes of its inputs; false if it needs them.
bool moved_before(const Graph& graph, Layer& layer, const Perm& perm) {
  const bool known =
      layer.type == "activation" || layer.type == "quantize" || layer.type == "binary" || layer.type == "concat";
  if (!known || layer.post.residual || layer.outputs.size() != 1) return false;
  for (int& blob : layer.inputs) {
    const Layer* transpose = producer_of(graph, blob);
    if (!puts_channels_last(transpose) || transpose->attrs.integers("perm") != perm) return false;
    blob = transpose->inputs[0];
    if (layer.type != "quantize" && !comes_of_bytes(graph, blob)) return false;
  }
  if (layer.type == "concat") {
    layer.attrs.set("axis", perm[static_cast<size_t>(layer.attrs.integer("axis"))]);
  }
  if (const Constant* other = layer.find_weight("other")) {
    if ((*other)->shape().rank() > static_cast<int>(perm.size())) return false;
    const Constant moved = untransposed(*other, perm);
    if (moved == nullptr) return false;
    layer.set_weight("other", moved);
  }
  return true;
}

}  // namespace

bool sink_channels_last(Graph& graph) {
  bool changed = false;
  const size_t count = graph.layers().size();
  for (size_t l = 0; l < count; ++l) {
    Layer layer = graph.layers()[l];
    const Layer* first = layer.inputs.empty() ? nullptr : producer_of(graph, layer.inputs[0]);
    if (!puts_channels_last(first)) continue;
    Layer transpose = *first;
    if (!moved_before(graph, layer, transpose.attrs.integers("perm"))) continue;
    transpose.inputs = {graph.insert_layer(std::move(layer))};
    retire(graph, static_cast<int>(l), graph.insert_layer(std::move(transpose)));
    changed = true;
  }
  return changed;
}

}  // namespace softneuro
