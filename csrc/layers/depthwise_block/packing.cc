#include "layers/depthwise_block/packing.h"

#include "kernels/conv_direct/conv_direct.h"
#include "layers/conv2d/depthwise.h"

namespace softneuro {

Packing stages_packing(const DepthwiseBlockStages& stages, const DepthwiseBlockParams& p, const BlockPacking& of) {
  Packing packing;
  if (p.expand) packing.add("expand", of.expand.packing(*p.expand, *stages.expand));
  packing.add("depthwise", depthwise_packing(p.depthwise, stages.depthwise, of.block, true));
  if (p.project) packing.add("project", of.project.packing(*p.project, *stages.project));
  return packing;
}

void pack_stages(const DepthwiseBlockStages& stages, const DepthwiseBlockParams& p, const BlockPacking& of,
                 Packed& to) {
  Packed expand = to.part("expand"), depthwise = to.part("depthwise"), project = to.part("project");
  if (p.expand) of.expand.pack(*p.expand, *stages.expand, expand);
  pack_depthwise(p.depthwise, stages.depthwise, of.block, depthwise);
  if (p.project) of.project.pack(*p.project, *stages.project, project);
}

Packing depthwise_block_packing(const Problem& problem, const BlockPacking& of) {
  const DepthwiseBlockStages stages = depthwise_block_stages(*problem.layer);
  return stages_packing(stages, depthwise_block_params(stages, problem.in[0]), of);
}

void pack_depthwise_block(const Problem& problem, const BlockPacking& of, Packed& to) {
  const DepthwiseBlockStages stages = depthwise_block_stages(*problem.layer);
  pack_stages(stages, depthwise_block_params(stages, problem.in[0]), of, to);
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
