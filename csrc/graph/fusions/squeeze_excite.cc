// Global average, two 1x1 convolutions of the single pixel that it leaves, and the product with what was averaged.
#include "graph/fusions.h"
#include "layers/conv2d/conv2d.h"

namespace softneuro::fusions {
namespace {

class SqueezeExciteFinder {
 public:
  SqueezeExciteFinder(const Graph& graph, std::vector<Fusion>& found) : graph_(graph), found_(found) {}

  void visit(int index) {
    const Layer& product = layer_at(index);
    if (product.type != "binary" || product.main_inputs() != 2 || product.attrs.text("function") != "mul") return;
    for (const size_t gate : {0, 1}) {
      const int image = product.inputs[1 - gate];
      const int excite = pointwise(inner_producer(product.inputs[gate], index));
      if (excite < 0) continue;
      const int squeeze = pointwise(inner_producer(layer_at(excite).inputs[0], excite));
      if (squeeze < 0) continue;
      const int pool = inner_producer(layer_at(squeeze).inputs[0], squeeze);
      if (pool < 0 || layer_at(pool).inputs[0] != image || !averages(layer_at(pool))) continue;
      if (graph_.blob(image).desc.shape != graph_.blob(product.output()).desc.shape) continue;
      add(pool, squeeze, excite, index);
      return;
    }
  }

 private:
  const Layer& layer_at(int index) const { return graph_.layers()[static_cast<size_t>(index)]; }

  // The layer that writes a blob which only `reader` reads; -1 if there is none.
  int inner_producer(int blob, int reader) const {
    const auto readers = graph_.consumers(blob);
    return readers.size() == 1 && readers[0] == reader && !graph_.is_output(blob) ? graph_.blob(blob).producer : -1;
  }

  // The layer, if it is a 1x1 convolution of one pixel; else -1.
  int pointwise(int index) const {
    if (index < 0 || layer_at(index).type != "conv2d" || layer_at(index).post.residual) return -1;
    const Conv2dParams p = conv2d_params(layer_at(index), graph_.blob(layer_at(index).inputs[0]).desc);
    return p.pointwise() && p.groups == 1 && p.h * p.w == 1 ? index : -1;
  }

  bool averages(const Layer& pool) const {
    const Shape& out = graph_.blob(pool.output()).desc.shape;
    if (!pool.post.empty() || out.rank() != 4 || out[2] * out[3] != 1) return false;
    if (pool.type == "adaptive_pool2d") return pool.attrs.text("function") == "avg";
    const std::vector<int64_t> pixel{2, 3};
    return pool.type == "reduce" && pool.attrs.text("function") == "mean" && pool.attrs.integers("axes") == pixel;
  }

  void add(int pool, int squeeze, int excite, int product) {
    Fusion& fusion = found_.emplace_back();
    fusion.layers = {pool, squeeze, excite, product};
    Layer& fused = fusion.layer;
    fused.type = "squeeze_excite";
    set_stage(fused, "squeeze", layer_at(squeeze), false);
    set_stage(fused, "excite", layer_at(excite), false);
    set_ends(graph_, fusion);
  }

  const Graph& graph_;
  std::vector<Fusion>& found_;
};

}  // namespace

void squeeze_excite(const Graph& graph, std::vector<Fusion>& fusions) {
  SqueezeExciteFinder finder(graph, fusions);
  for (int index = 0; index < static_cast<int>(graph.layers().size()); ++index) finder.visit(index);
}

}  // namespace softneuro::fusions
