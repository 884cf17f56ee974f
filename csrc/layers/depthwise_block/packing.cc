#include "layers/depthwise_block/packing.h"

#include <algorithm>

namespace softneuro {
namespace {

constexpr int pixel_bytes = 24 << 10;  // of a 1x1 stage's input that all its panels pass over: most of an L1

}  // namespace

DepthwiseBlockPacking::DepthwiseBlockPacking(const DepthwiseBlockParams& p, int block) {
  const auto take = [&](size_t floats) {
    const int64_t at = size;
    size += (static_cast<int64_t>(floats) + 15) / 16 * 16;
    return at;
  };
  if (p.expand) {
    expand = take(conv_direct_packed_size(direct_shape(*p.expand), block));
    expand_bias = take(conv_direct_bias_size(direct_shape(*p.expand), block));
  }
  const auto filters = static_cast<int>(p.depthwise.c);
  depthwise = take(
      conv_depthwise_packed_size(filters, static_cast<int>(p.depthwise.kh), static_cast<int>(p.depthwise.kw), block));
  depthwise_bias = take(static_cast<size_t>(channel_blocks(filters, block) * block));
  if (p.project) {
    project = take(conv_direct_packed_size(direct_shape(*p.project), block));
    project_bias = take(conv_direct_bias_size(direct_shape(*p.project), block));
  }
}

std::shared_ptr<const Packed> pack_depthwise_block(const Problem& problem, const ConvDirectKernels& kernels,
                                                   int expand_panel, int project_panel) {
  const int block = kernels.block;
  const DepthwiseBlockStages stages = depthwise_block_stages(*problem.layer);
  const DepthwiseBlockParams p = depthwise_block_params(stages, problem.in[0]);
  const DepthwiseBlockPacking at(p, block);
  auto packed = std::make_shared<PackedFloats>(at.size);
  float* to = packed->data();
  std::fill_n(to, at.size, 0.0f);
  const auto bias = [&](const Layer& stage, int64_t place) {
    if (const Constant* values = stage.find_weight("bias")) {
      std::copy_n((*values)->values().get(), (*values)->elements(), to + place);
    }
  };
  const auto pointwise = [&](const Conv2dParams& stage, const Layer& layer, int panel, int64_t place) {
    const auto values = layer.weight("weight")->values();
    kernels.pack(direct_shape(stage), panel, {values.get()}, to + place);
  };
  if (p.expand) {
    pointwise(*p.expand, *stages.expand, expand_panel, at.expand);
    bias(*stages.expand, at.expand_bias);
  }
  conv_depthwise_pack(static_cast<int>(p.depthwise.c), static_cast<int>(p.depthwise.kh),
                      static_cast<int>(p.depthwise.kw), block, stages.depthwise.weight("weight")->values().get(),
                      to + at.depthwise);
  bias(stages.depthwise, at.depthwise_bias);
  if (p.project) {
    pointwise(*p.project, *stages.project, project_panel, at.project);
    bias(*stages.project, at.project_bias);
  }
  return packed;
}

ConvDirectArgs pointwise_args(const Conv2dParams& p, const Layer& stage, int panel, const float* weights,
                              const float* bias) {
  ConvDirectArgs args{};
  args.shape = direct_shape(p);
  const int64_t pixels = pixel_bytes / (p.c * static_cast<int64_t>(sizeof(float)));
  args.tiling = {panel, static_cast<int>(std::max<int64_t>(pixels, 28)), static_cast<int>(p.c)};
  args.weights = weights;
  args.epilogue = {.bias = bias, .activation = stage.post.activation};
  return args;
}

int widest_panel(Isa isa, int64_t channels) {
  const ConvDirectKernels& kernels = *conv_direct_kernels(isa);
  const int64_t blocks = channel_blocks(channels, kernels.block);
  for (int panel = kernels.max_panel; panel > 1; --panel) {
    if (blocks % panel != 1) return panel;
  }
  return 1;
}

}  // namespace softneuro
