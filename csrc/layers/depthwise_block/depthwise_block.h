// depthwise_block: a depthwise convolution with the convolution before it, the 1x1 convolution after it, or both, as in
// inverted residuals, separable convolutions and at the start of networks made of these. Put in by plans in place of
// the layers that it covers, never by a door.
//
//   expand:    x[N,C,H,W] -> [N,E,H',W'], `expand_weight`[E,C,kh,kw], `expand_bias`[E], activation `expand_*`,
//              `expand_stride`, `expand_padding`, `expand_dilation`; mostly 1x1 of stride 1; with `values`[C,256] an
//              image_conv
//   depthwise: `depthwise_weight`[E,1,kh,kw], `depthwise_bias`[E], activation `depthwise_*`
//   project:   1x1, -> [N,K,H",W"], `project_weight`[K,E,1,1], `project_bias`[K]
//
// expand is there if its weight is, project likewise; the last stage's activation and residual are the layer's own.
#pragma once

#include <optional>

#include "layers/contract/layer.h"
#include "layers/conv2d/conv2d.h"

namespace softneuro {

// A stage as the conv2d, or the first one as the image_conv, that it is: without inputs and output.
struct DepthwiseBlockStages {
  std::optional<Layer> expand;
  Layer depthwise;
  std::optional<Layer> project;
};
// Throws Error about the first thing that is wrong.
DepthwiseBlockStages depthwise_block_stages(const Layer& layer);

// The stages, their input shapes implied by each other.
struct DepthwiseBlockParams {
  std::optional<Conv2dParams> expand;
  bool of_bytes = false;  // expand is an image_conv
  Conv2dParams depthwise;
  std::optional<Conv2dParams> project;

  const Conv2dParams& first() const { return expand ? *expand : depthwise; }
  const Conv2dParams& last() const { return project ? *project : depthwise; }
};
DepthwiseBlockParams depthwise_block_params(const DepthwiseBlockStages& stages, const TensorDesc& in);

}  // namespace softneuro
