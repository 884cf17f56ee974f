// What the routines of depthwise_block share: the kernels' arguments of each stage, and the packing of the weights.
#pragma once

#include <functional>
#include <memory>

#include "kernels/conv_depthwise/conv_depthwise.h"
#include "layers/conv2d/blocked.h"
#include "layers/conv2d/depthwise.h"
#include "layers/depthwise_block/depthwise_block.h"
#include "layers/packed_floats.h"

namespace softneuro {

inline int64_t channel_blocks(int64_t channels, int block) { return (channels + block - 1) / block; }

// Floats of a block's pixels between the stages: an odd number of lines, so that blocks do not compete for the same
// cache sets.
inline int64_t plane_floats(int64_t pixels, int block) { return ((pixels * block + 15) / 16 | 1) * 16; }

// How a 1x1 stage's weights are packed for some kernels: how many floats they take, and their packing.
struct StagePacking {
  std::function<size_t(const Conv2dParams&)> floats;
  std::function<void(const Conv2dParams&, const Layer& stage, float* packed)> pack;
};

// Of the stages around the depthwise one.
struct BlockPacking {
  StagePacking expand, project;
  int block;
};

// Where each stage's weights and bias are in the packed floats.
struct DepthwiseBlockPacking {
  int64_t expand = 0, expand_bias = 0, depthwise = 0, depthwise_bias = 0, project = 0, project_bias = 0, size = 0;

  DepthwiseBlockPacking(const DepthwiseBlockParams& p, const BlockPacking& packing);
};
std::shared_ptr<const Packed> pack_depthwise_block(const Problem& problem, const BlockPacking& packing);
// Of the stages that `p` has.
std::shared_ptr<const Packed> pack_stages(const DepthwiseBlockStages& stages, const DepthwiseBlockParams& p,
                                          const BlockPacking& packing);

// Output channel blocks of a 1x1 stage that share a pass over its input: as many as pay, and so that a last block that
// is at most half full is not alone.
int widest_panel(Isa isa, int64_t channels);

}  // namespace softneuro
