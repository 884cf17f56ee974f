// An image of bytes that becomes reals, what scales them by channel, and the convolution of the result.
#include "graph/fusions.h"
#include "graph/fusions/scaled_image.h"

namespace softneuro::fusions {

void image_conv(const Graph& graph, std::vector<Fusion>& fusions) {
  for (int index = 0; index < static_cast<int>(graph.layers().size()); ++index) {
    const Layer& conv = graph.layers()[static_cast<size_t>(index)];
    if (conv.type != "conv2d" || conv.post.residual) continue;
    const auto image = scaled_image(graph, index);
    if (!image) continue;
    Fusion& fusion = fusions.emplace_back();
    fusion.layers = image->layers;
    fusion.layers.push_back(index);
    fusion.layer.type = "image_conv";
    fusion.layer.attrs = conv.attrs;
    fusion.layer.set_weight("values", image->values);
    set_stage(fusion.layer, "conv", conv, true);
    set_ends(graph, fusion);
  }
}

}  // namespace softneuro::fusions
