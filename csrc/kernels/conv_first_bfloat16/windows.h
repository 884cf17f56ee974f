// Where the samples of a window lie: two rows at a time, pairs of their samples in the order of taps.
#pragma once

#include "kernels/conv_bfloat16/conv_bfloat16.h"
#include "kernels/conv_first/conv_first.h"
#include "kernels/integers.h"

namespace softneuro {

// Rows of a window are counted through its channels: row r of channel c is number c * kernel_h + r.
inline int window_rows(const ConvFirstArgs& s) { return s.in_channels * s.kernel_h; }
inline int window_row_pairs(const ConvFirstArgs& s) { return ceil_div(window_rows(s), 2); }

// Windows as pixels: pair n of samples, of rows 2q and 2q + 1 at tap n % kernel_w, q = n / kernel_w, is channels n and
// n + block of the blocks that conv_bfloat16 puts side by side.
inline ConvBfloat16Shape window_shape(const ConvFirstArgs& s, int block, int parts) {
  const int pixels = s.out_h * s.out_w;
  return {.parts = parts,
          .panel = 2,
          .in_channels = round_up(window_row_pairs(s) * s.kernel_w, block) * 2,
          .out_channels = s.out_channels,
          .y = {.in = pixels, .out = pixels},
          .x = {.in = 1, .out = 1}};
}

}  // namespace softneuro
