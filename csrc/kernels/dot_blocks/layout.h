// Where packed weights lie. A panel is a vector of outputs: for each block of a row the vector of scales, that of zero
// points if there are any, as floats less the middle of the integers' range, and then the integers, less that middle,
// too, as many of each output at a time as a lane holds.
#pragma once

#include "kernels/dot_blocks/dot_blocks.h"
#include "kernels/integers.h"

namespace softneuro {

// Weights in a lane.
[[gnu::always_inline]] constexpr int dot_blocks_step(int bits) { return 32 / bits; }
[[gnu::always_inline]] constexpr int dot_blocks_panels(int n, int lanes) { return ceil_div(n, lanes); }
// Integers.
[[gnu::always_inline]] inline size_t dot_blocks_panel_size(const DotBlocks& p, int lanes) {
  const int vectors = ceil_div(p.k, p.block) * (p.zeros ? 2 : 1) + ceil_div(p.k, dot_blocks_step(p.bits));
  return static_cast<size_t>(vectors) * lanes;
}

}  // namespace softneuro
