// A depthwise convolution with the convolution before it, the 1x1 convolution after it, or both; with the image of
// bytes that the first one reads, too.
#include "graph/fusions.h"
#include "graph/fusions/scaled_image.h"
#include "layers/conv2d/conv2d.h"

namespace softneuro::fusions {
namespace {

class DepthwiseBlockFinder {
 public:
  DepthwiseBlockFinder(const Graph& graph, std::vector<Fusion>& found) : graph_(graph), found_(found) {}

  void visit(int index) {
    const Layer& layer = layer_at(index);
    if (layer.type != "conv2d" || !params(index).depthwise()) return;
    const int before = whole(graph_.blob(layer.inputs[0]).producer);
    const bool expands = before >= 0 && !layer_at(before).post.residual && only_reader(before) == index;
    const int after = layer.post.residual ? -1 : pointwise(only_reader(index));
    const bool projects = after >= 0 && layer_at(after).inputs[0] == layer.output();
    const auto add_from_first = [&](const ScaledImage* image) {
      if (projects) add(image, before, index, after);
      add(image, before, index, -1);
    };
    if (expands) {
      const auto image = scaled_image(graph_, before);
      if (image) add_from_first(&*image);
      add_from_first(nullptr);
    }
    if (projects) add(nullptr, -1, index, after);
  }

 private:
  const Layer& layer_at(int index) const { return graph_.layers()[static_cast<size_t>(index)]; }
  Conv2dParams params(int index) const {
    return conv2d_params(layer_at(index), graph_.blob(layer_at(index).inputs[0]).desc);
  }

  // The layer, if it is a convolution without groups; else -1.
  int whole(int index) const {
    return index >= 0 && layer_at(index).type == "conv2d" && params(index).groups == 1 ? index : -1;
  }
  // The layer, if it is a 1x1 convolution that changes no size; else -1.
  int pointwise(int index) const {
    if (whole(index) < 0) return -1;
    const Conv2dParams p = params(index);
    return p.pointwise() && p.sh == 1 && p.sw == 1 ? index : -1;
  }

  // The only layer that reads a layer's output, in one place; -1 if there are more, or none.
  int only_reader(int index) const {
    const int blob = layer_at(index).output();
    const auto readers = graph_.consumers(blob);
    if (readers.size() != 1 || graph_.is_output(blob)) return -1;
    const auto& inputs = layer_at(readers[0]).inputs;
    return inputs.size() > 1 && inputs[0] == inputs[1] ? -1 : readers[0];
  }

  static void set_window(Layer& block, const std::string& prefix, const Layer& stage) {
    for (const char* name : {"stride", "padding", "dilation"}) {
      if (const AttrValue* value = stage.attrs.find(name)) block.attrs.set(prefix + name, *value);
    }
  }

  // image: that `before` reads, or null.
  void add(const ScaledImage* image, int before, int index, int after) {
    Fusion& fusion = found_.emplace_back();
    Layer& block = fusion.layer;
    block.type = "depthwise_block";
    if (image != nullptr) {
      fusion.layers = image->layers;
      block.set_weight("values", image->values);
    }
    if (before >= 0) {
      fusion.layers.push_back(before);
      set_stage(block, "expand", layer_at(before), false);
      if (pointwise(before) < 0) set_window(block, "expand_", layer_at(before));
    }
    fusion.layers.push_back(index);
    set_stage(block, "depthwise", layer_at(index), after < 0);
    if (after >= 0) {
      fusion.layers.push_back(after);
      set_stage(block, "project", layer_at(after), true);
    }
    set_window(block, "", layer_at(index));
    set_ends(graph_, fusion);
  }

  const Graph& graph_;
  std::vector<Fusion>& found_;
};

}  // namespace

void depthwise_block(const Graph& graph, std::vector<Fusion>& fusions) {
  DepthwiseBlockFinder finder(graph, fusions);
  for (int index = 0; index < static_cast<int>(graph.layers().size()); ++index) finder.visit(index);
}

}  // namespace softneuro::fusions
