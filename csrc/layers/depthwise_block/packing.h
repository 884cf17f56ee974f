// What the routines of depthwise_block share: how far channel blocks lie apart, and the packing of the weights.
#pragma once

#include <functional>

#include "base/arch.h"
#include "base/lines.h"
#include "kernels/integers.h"
#include "layers/contract/packed.h"
#include "layers/depthwise_block/depthwise_block.h"

namespace softneuro {

inline int64_t channel_blocks(int64_t channels, int block) { return ceil_div(channels, block); }

// Floats of a block's pixels between the stages.
inline int64_t plane_floats(int64_t pixels, int block) { return odd_lines(pixels * block); }

// How a 1x1 stage is packed for some kernels.
struct StagePacking {
  std::function<Packing(const Conv2dParams&, const Layer& stage)> packing;
  std::function<void(const Conv2dParams&, const Layer& stage, Packed& to)> pack;
};

// How the stages around the depthwise one are packed.
struct BlockPacking {
  StagePacking expand, project;
  int block;
};

// Packs the stages that `p` has: the parts "expand", "depthwise" and "project".
Packing stages_packing(const DepthwiseBlockStages& stages, const DepthwiseBlockParams& p, const BlockPacking& of);
void pack_stages(const DepthwiseBlockStages& stages, const DepthwiseBlockParams& p, const BlockPacking& of, Packed& to);

// Packs all stages of a layer.
Packing depthwise_block_packing(const Problem& problem, const BlockPacking& of);
void pack_depthwise_block(const Problem& problem, const BlockPacking& of, Packed& to);

// Output channel blocks of a 1x1 stage that share a pass over its input: as many as pay, and so that a last block that
// is at most half full is not alone.
int widest_panel(Isa isa, int64_t channels);

}  // namespace softneuro
