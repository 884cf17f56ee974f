// What the routines of depthwise_block that go through an image in bands of rows share.
#pragma once

#include <algorithm>

#include "base/refusal.h"
#include "base/threads.h"
#include "layers/depthwise_block/depthwise_block.h"

namespace softneuro {

// Rows of the depthwise stage's input that output rows [begin, end) need.
inline Range rows_below(const Conv2dParams& p, int64_t begin, int64_t end) {
  const int64_t top = begin * p.sh - p.pt, bottom = (end - 1) * p.sh - p.pt + (p.kh - 1) * p.dh + 1;
  const int64_t first = std::clamp<int64_t>(top, 0, p.h);
  return {first, std::clamp<int64_t>(bottom, first, p.h)};
}
// Of any `rows` output rows.
inline int64_t most_rows_below(const Conv2dParams& p, int64_t rows) {
  return std::min(p.h, (rows - 1) * p.sh + (p.kh - 1) * p.dh + 1);
}

// Of the output, an even number: what lies between the stages then leaves room in L2 for what surrounds them. block: of
// the channels.
int rows_in_l2(const DepthwiseBlockParams& p, int block);
// Threads that pay (see split.h).
int depthwise_block_threads(const DepthwiseBlockParams& p, int threads);
// Refuses stages around the depthwise one that are no 1x1 convolutions of stride 1, and sizes beyond what kernels count
// in; the second looks at what comes after the first stage only.
Refusal check_pointwise_block(const DepthwiseBlockParams& p);
Refusal check_later_stages(const DepthwiseBlockParams& p);

}  // namespace softneuro
