// Pooling in its plainest form: means over an image are global pooling, adaptive pooling with equal windows is pooling.
#include "graph/passes/common.h"
#include "graph/passes/passes.h"

namespace softneuro {
namespace {

// A reduction over height and width, whichever way round.
bool over_images(const Layer& layer, const Shape& in) {
  if (layer.type != "reduce" || in.rank() != 4 || in.elements() == 0) return false;
  const std::string function = layer.attrs.text("function");
  const std::vector<int64_t>& axes = layer.attrs.integers("axes");
  return (function == "mean" || function == "amax") && axes.size() == 2 && axes[0] + axes[1] == 5 &&
         axes[0] * axes[1] == 6;
}

void reduce_to_pool(Graph& graph, int index) {
  Layer pool = graph.layers()[static_cast<size_t>(index)];
  const Shape& shape = graph.blob(pool.output()).desc.shape;
  const std::vector<int64_t> out(shape.begin(), shape.end());
  pool.type = "adaptive_pool2d";
  const std::string function = pool.attrs.text("function") == "mean" ? "avg" : "max";
  pool.attrs = {};
  pool.attrs.set("function", function);
  pool.attrs.set("output_size", std::vector<int64_t>{1, 1});
  Layer reshape;
  reshape.name = pool.name;
  reshape.type = "reshape";
  reshape.attrs.set("shape", out);
  reshape.inputs = {graph.insert_layer(std::move(pool))};
  retire(graph, index, graph.insert_layer(std::move(reshape)));
}

// Windows of equal size side by side. Global pooling stays what it is: it has routines of its own.
bool divisible(const Layer& layer, const Shape& in, const Shape& out) {
  return layer.type == "adaptive_pool2d" && out.product(2, 4) > 1 && in[2] % out[2] == 0 && in[3] % out[3] == 0 &&
         in.elements() > 0;
}

}  // namespace

bool flatten_pool(Graph& graph) {
  bool changed = false;
  const size_t count = graph.layers().size();
  for (size_t l = 0; l < count; ++l) {
    Layer& layer = graph.layer(static_cast<int>(l));
    if (layer.inputs.size() != 1 || !layer.post.empty()) continue;
    const Shape in = graph.blob(layer.inputs[0]).desc.shape, out = graph.blob(layer.output()).desc.shape;
    if (over_images(layer, in)) {
      reduce_to_pool(graph, static_cast<int>(l));
      changed = true;
    } else if (divisible(layer, in, out)) {
      const std::vector<int64_t> window{in[2] / out[2], in[3] / out[3]};
      layer.type = "pool2d";
      layer.attrs.erase("output_size");
      layer.attrs.set("kernel", window);
      layer.attrs.set("stride", window);
      changed = true;
    }
  }
  return changed;
}

}  // namespace softneuro
