#include "layers/depthwise_block/packing.h"

#include <algorithm>

namespace softneuro {
namespace {

constexpr int pixel_bytes = 24 << 10;  // of a 1x1 stage's input that all its panels pass over: most of an L1

}  // namespace

StagePacking direct_packing(const ConvDirectKernels& kernels, int expand_panel, int project_panel) {
  const auto pack = [&kernels](int panel) {
    return [&kernels, panel](const Conv2dParams& p, const float* weights, float* packed) {
      kernels.pack(direct_shape(p), panel, {weights}, packed);
    };
  };
  return {.floats = [&](const Conv2dParams& p) { return conv_direct_packed_size(direct_shape(p), kernels.block); },
          .expand = pack(expand_panel),
          .project = pack(project_panel)};
}

DepthwiseBlockPacking::DepthwiseBlockPacking(const DepthwiseBlockParams& p, const StagePacking& packing, int block) {
  const auto take = [&](size_t floats) {
    const int64_t at = size;
    size += (static_cast<int64_t>(floats) + 15) / 16 * 16;
    return at;
  };
  const auto bias = [&](const Conv2dParams& stage) {
    return take(static_cast<size_t>(channel_blocks(stage.k, block) * block));
  };
  if (p.expand) {
    expand = take(packing.floats(*p.expand));
    expand_bias = bias(*p.expand);
  }
  depthwise = take(conv_depthwise_packed_size(static_cast<int>(p.depthwise.c), static_cast<int>(p.depthwise.kh),
                                              static_cast<int>(p.depthwise.kw), block));
  depthwise_bias = bias(p.depthwise);
  if (p.project) {
    project = take(packing.floats(*p.project));
    project_bias = bias(*p.project);
  }
}

std::shared_ptr<const Packed> pack_depthwise_block(const Problem& problem, const StagePacking& packing, int block) {
  const DepthwiseBlockStages stages = depthwise_block_stages(*problem.layer);
  return pack_stages(stages, depthwise_block_params(stages, problem.in[0]), packing, block);
}

std::shared_ptr<const Packed> pack_stages(const DepthwiseBlockStages& stages, const DepthwiseBlockParams& p,
                                          const StagePacking& packing, int block) {
  const DepthwiseBlockPacking at(p, packing, block);
  auto packed = std::make_shared<PackedFloats>(at.size);
  float* to = packed->data();
  std::fill_n(to, at.size, 0.0f);
  const auto bias = [&](const Layer& stage, int64_t place) {
    if (const Constant* values = stage.find_weight("bias")) {
      std::copy_n((*values)->values().get(), (*values)->elements(), to + place);
    }
  };
  if (p.expand) {
    packing.expand(*p.expand, stages.expand->weight("weight")->values().get(), to + at.expand);
    bias(*stages.expand, at.expand_bias);
  }
  conv_depthwise_pack(static_cast<int>(p.depthwise.c), static_cast<int>(p.depthwise.kh),
                      static_cast<int>(p.depthwise.kw), block, stages.depthwise.weight("weight")->values().get(),
                      to + at.depthwise);
  bias(stages.depthwise, at.depthwise_bias);
  if (p.project) {
    packing.project(*p.project, stages.project->weight("weight")->values().get(), to + at.project);
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
