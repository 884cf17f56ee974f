// Zero padding in front of a convolution or an average pooling becomes its own padding.
#include <algorithm>

#include "graph/passes/common.h"
#include "graph/passes/passes.h"

namespace softneuro {
namespace {

// Begin and end of every spatial axis in the order of a `padding` attribute: all begins, then all ends.
std::vector<int64_t> spatial_pads(const Layer& pad, int rank) {
  const std::vector<int64_t>& pads = pad.attrs.integers("pads");
  std::vector<int64_t> spatial;
  for (int side = 0; side < 2; ++side)
    for (int axis = 2; axis < rank; ++axis) spatial.push_back(pads[static_cast<size_t>(side * rank + axis)]);
  return spatial;
}

bool pads_zeros_around_images(const Layer& pad, int rank) {
  if (pad.attrs.text("mode") != "constant" || pad.attrs.real("value", 0) != 0 || rank < 3) return false;
  const std::vector<int64_t>& pads = pad.attrs.integers("pads");
  for (int side = 0; side < 2; ++side)
    for (int axis = 0; axis < rank; ++axis) {
      const int64_t width = pads[static_cast<size_t>(side * rank + axis)];
      if (width < 0 || (axis < 2 && width != 0)) return false;
    }
  return true;
}

// Averages over windows that the pad fills: the same if zeros count, and if nothing but the pad moves the last window.
bool average_allows(const Layer& pool, const std::vector<int64_t>& padding) {
  if (pool.type != "pool2d" || pool.attrs.text("function") != "avg" || pool.attrs.flag("ceil_mode", false))
    return false;
  const std::vector<int64_t> own = pool.attrs.integers("padding", {0, 0, 0, 0});
  const bool pads = std::any_of(own.begin(), own.end(), [](int64_t width) { return width != 0; });
  if (pads && !pool.attrs.flag("count_include_pad", true)) return false;
  const std::vector<int64_t>& kernel = pool.attrs.integers("kernel");
  // A pooling's padding is at most half its kernel.
  for (size_t side = 0; side < 4; ++side)
    if (2 * (own[side] + padding[side]) > kernel[side % 2]) return false;
  return true;
}

}  // namespace

bool pad_into_conv(Graph& graph) {
  bool changed = false;
  for (size_t l = 0; l < graph.layers().size(); ++l) {
    Layer& layer = graph.layer(static_cast<int>(l));
    if (layer.inputs.empty()) continue;
    const Layer* pad = producer_of(graph, layer.inputs[0]);
    if (pad == nullptr || pad->type != "pad" || !pad->post.empty()) continue;
    const int rank = graph.blob(layer.inputs[0]).desc.shape.rank();
    if (!pads_zeros_around_images(*pad, rank)) continue;
    std::vector<int64_t> padding = spatial_pads(*pad, rank);
    if (layer.type == "pool2d") {
      if (!average_allows(layer, padding)) continue;
      layer.attrs.set("count_include_pad", int64_t{1});
    } else if (layer.type != "conv2d" && layer.type != "conv1d") {
      continue;
    }
    const std::vector<int64_t> own = layer.attrs.integers("padding", std::vector<int64_t>(padding.size(), 0));
    for (size_t side = 0; side < padding.size(); ++side) padding[side] += own[side];
    layer.attrs.set("padding", std::move(padding));
    layer.inputs[0] = pad->inputs[0];
    changed = true;
  }
  return changed;
}

}  // namespace softneuro
