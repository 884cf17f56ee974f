// Where packed weights lie. A panel is a vector of outputs: for each group of a row the vector of scales, by their
// bits, then eight weights of each output at a time, as four vectors with the upper 16 bits of two in each lane, and
// one with the lower four bits of all eight. One stream: with scales in memory of their own, all took 5 to 25 % longer
// on Zen 4.
#pragma once

#include "kernels/dot_scaled/dot_scaled.h"
#include "kernels/integers.h"

namespace softneuro {

constexpr int dot_scaled_step = 8;  // weights of a row that are kept together

[[gnu::always_inline]] constexpr int dot_scaled_step_vectors(int bits) { return bits == 20 ? 5 : 4; }
[[gnu::always_inline]] constexpr int dot_scaled_panels(int n, int lanes) { return ceil_div(n, lanes); }
// Integers.
[[gnu::always_inline]] constexpr size_t dot_scaled_panel_size(int k, int bits, int lanes) {
  const int vectors = ceil_div(k, DotScaled::group) + ceil_div(k, dot_scaled_step) * dot_scaled_step_vectors(bits);
  return static_cast<size_t>(vectors) * lanes;
}

}  // namespace softneuro
