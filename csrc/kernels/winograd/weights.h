// The transform of weights: rows and columns are independent, hence two passes. In double, since it is done once and
// its rounding would stay in every result. See winograd.h.
#pragma once

#include "kernels/winograd/winograd.h"
#include "simd/simd.h"

namespace softneuro::SN_ISA {
namespace winograd {

// The compiler makes as many registers of these as the level needs.
using Doubles [[gnu::vector_size(lanes * sizeof(double))]] = double;
using Floats [[gnu::vector_size(lanes * sizeof(float))]] = float;

// A whole block at once: positions are far apart, and lines that are written in halves would be fetched twice.
inline void transform_weights(const WinogradWeights& g, const float* taps, int width, float* dst, size_t dst_position) {
  Doubles half[winograd_max_axis][winograd_max_axis];
  for (int r = 0; r < g.taps_h; ++r) {
    for (int j = 0; j < g.columns; ++j) half[r][j] = Doubles{};
    for (int s = 0; s < g.taps_w; ++s) {
      Floats from;
      __builtin_memcpy(&from, taps + static_cast<size_t>(r * g.taps_w + s) * width, sizeof(from));
      const Doubles x = __builtin_convertvector(from, Doubles);
      for (int j = 0; j < g.columns; ++j) half[r][j] += g.gw[j * g.taps_w + s] * x;
    }
  }
  for (int i = 0; i < g.rows; ++i) {
    for (int j = 0; j < g.columns; ++j, dst += dst_position) {
      Doubles sum = {};
      for (int r = 0; r < g.taps_h; ++r) sum += g.gh[i * g.taps_h + r] * half[r][j];
      const Floats to = __builtin_convertvector(sum, Floats);
      __builtin_memcpy(dst, &to, sizeof(to));
    }
  }
}

}  // namespace winograd
}  // namespace softneuro::SN_ISA
