// Weights from rows, one per output channel, to vectors of output channels.
#pragma once

#include "kernels/unroll.h"
#include "simd/simd.h"

namespace softneuro::SN_ISA {

// Floats [0, count) of up to `lanes` rows, `stride` apart: place(i) is where those of column i go, zeros in the lanes
// past the rows. factors: one per row; null: 1.
template <class Place>
SN_INLINE void turn_rows(const float* src, ptrdiff_t stride, int rows, int count, const float* factors, Place&& place) {
  const Vf factor = factors == nullptr ? set(1) : load_n(factors, rows);
  int l = 0;
  for (; rows == lanes && l + lanes <= count; l += lanes) {
    Vf x[lanes];
    load_columns(src + l, stride, x);
    unroll<lanes>([&](auto i) { store(place(l + i), factors == nullptr ? x[i] : x[i] * factor); });
  }
  for (; l < count; l += lanes) {
    const int columns = count - l < lanes ? count - l : lanes;
    Vf x[lanes];
    unroll<lanes>([&](auto i) { x[i] = i < rows ? load_n(src + i * stride + l, columns) : zero(); });
    transpose(x);
    unroll<lanes>([&](auto i) {
      if (i < columns) store(place(l + i), factors == nullptr ? x[i] : x[i] * factor);
    });
  }
}

}  // namespace softneuro::SN_ISA
