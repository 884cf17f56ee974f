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

// Threads that pay (see split.h).
int depthwise_block_threads(const DepthwiseBlockParams& p, int threads);
// Refuses 1x1 stages that are more than that, and sizes beyond what kernels count in.
Refusal check_depthwise_block(const DepthwiseBlockParams& p);

}  // namespace softneuro
