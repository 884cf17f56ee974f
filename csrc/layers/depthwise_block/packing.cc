#include "layers/depthwise_block/packing.h"

#include <algorithm>

namespace softneuro {

DepthwiseBlockPacking::DepthwiseBlockPacking(const DepthwiseBlockParams& p, const BlockPacking& packing) {
  const int block = packing.block;
  const auto take = [&](size_t floats) {
    const int64_t at = size;
    size += (static_cast<int64_t>(floats) + 15) / 16 * 16;
    return at;
  };
  const auto bias = [&](const Conv2dParams& stage) {
    return take(static_cast<size_t>(channel_blocks(stage.k, block) * block));
  };
  if (p.expand) {
    expand = take(packing.expand.floats(*p.expand));
    expand_bias = bias(*p.expand);
  }
  depthwise = take(conv_depthwise_packed_size(static_cast<int>(p.depthwise.c), static_cast<int>(p.depthwise.kh),
                                              static_cast<int>(p.depthwise.kw), block));
  depthwise_bias = bias(p.depthwise);
  if (p.project) {
    project = take(packing.project.floats(*p.project));
    project_bias = bias(*p.project);
  }
}

std::shared_ptr<const Packed> pack_depthwise_block(const Problem& problem, const BlockPacking& packing) {
  const DepthwiseBlockStages stages = depthwise_block_stages(*problem.layer);
  return pack_stages(stages, depthwise_block_params(stages, problem.in[0]), packing);
}

std::shared_ptr<const Packed> pack_stages(const DepthwiseBlockStages& stages, const DepthwiseBlockParams& p,
                                          const BlockPacking& packing) {
  const DepthwiseBlockPacking at(p, packing);
  auto packed = std::make_shared<PackedFloats>(at.size);
  float* to = packed->data();
  std::fill_n(to, at.size, 0.0f);
  const auto bias = [&](const Layer& stage, int64_t place) {
    if (const Constant* values = stage.find_weight("bias")) {
      std::copy_n((*values)->values().get(), (*values)->elements(), to + place);
    }
  };
  if (p.expand) {
    packing.expand.pack(*p.expand, *stages.expand, to + at.expand);
    bias(*stages.expand, at.expand_bias);
  }
  conv_depthwise_pack(static_cast<int>(p.depthwise.c), static_cast<int>(p.depthwise.kh),
                      static_cast<int>(p.depthwise.kw), packing.block,
                      stages.depthwise.weight("weight")->values().get(), to + at.depthwise);
  bias(stages.depthwise, at.depthwise_bias);
  if (p.project) {
    packing.project.pack(*p.project, *stages.project, to + at.project);
    bias(*stages.project, at.project_bias);
  }
  return packed;
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
