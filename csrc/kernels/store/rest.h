// What registers leave to do, over rows that were just written and are still in L1. Compiled once per level.
#pragma once

#include "kernels/store/store.h"
#include "simd/simd.h"

namespace softneuro::SN_ISA {

// dst[i] = activation(src[i]) for i < n; dst may be src.
void activate_row(float* dst, const float* src, size_t n, const Activation& activation);

void store_rows(const StoreRows& rows);

// Blocked pixels of floats whose activation was done if `activated`: then zero in the lanes past the first `channels`.
SN_INLINE void finish_written(const Activation& activation, bool activated, float* row, int pixels, int channels) {
  if (!activated) activate_row(row, row, static_cast<size_t>(pixels) * lanes, activation);
  if (channels == lanes) return;
  for (int p = 0; p < pixels; ++p) store(row + p * lanes, load_n(row + p * lanes, channels));
}

}  // namespace softneuro::SN_ISA
