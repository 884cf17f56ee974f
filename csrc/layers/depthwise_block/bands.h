// What the routines of depthwise_block that go through an image in bands of rows share.
#pragma once

#include "base/refusal.h"
#include "layers/conv2d/rows.h"
#include "layers/depthwise_block/depthwise_block.h"

namespace softneuro {

// Rows of the output, an even number: what lies between the stages then leaves room in L2 for what surrounds them.
// block counts channels.
int rows_in_l2(const DepthwiseBlockParams& p, int block);
// Threads that pay (see split.h).
int depthwise_block_threads(const DepthwiseBlockParams& p, int threads);
// Refuses stages around the depthwise one that are no 1x1 convolutions of stride 1, and sizes beyond what kernels count
// in; the second looks at what comes after the first stage only.
Refusal check_pointwise_block(const DepthwiseBlockParams& p);
Refusal check_later_stages(const DepthwiseBlockParams& p);

}  // namespace softneuro
