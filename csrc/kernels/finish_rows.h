// The end of a tile of sums whose rows are rows of dst: matrix products, convolutions on channels-last blobs.
// Activations that are not a clamp are left to activate_row.
#pragma once

#include "kernels/apply_activation.h"
#include "kernels/epilogue.h"
#include "kernels/unroll.h"

namespace softneuro::SN_ISA {

struct RowTile {
  float* dst;
  const float* residual;  // null: none
  ptrdiff_t stride;       // of dst and residual
  const float* bias;      // at row 0, column 0 of the tile; null: none
  bool bias_per_row = false;
  int columns;       // of the last vector
  bool first, last;  // start from nothing, else from dst; finish, else only store the sums
  ClampBounds bounds;
};

template <int panel>
SN_INLINE Vf load_column(const float* row, int vector, int columns) {
  return vector + 1 < panel ? load(row + vector * lanes) : load_n(row + vector * lanes, columns);
}

template <int rows, int panel>
SN_INLINE void finish_rows(const RowTile& t, const Vf* products) {
  // A copy: were the sums themselves handed around here, g++ 12 would also store them in every step of the loops.
  Vf sum[rows * panel];
  unroll<rows * panel>([&](auto i) { sum[i] = products[i]; });
  const auto each = [&](const auto& body) {
    unroll<rows>([&](auto i) { unroll<panel>([&](auto v) { body(i, v, sum[i * panel + v]); }); });
  };
  if (!t.first) {
    each([&](auto i, auto v, Vf& x) { x = x + load_column<panel>(t.dst + i * t.stride, v, t.columns); });
  }
  if (t.last) {
    if (t.bias != nullptr && t.bias_per_row) {
      each([&](auto i, auto, Vf& x) { x = x + set(t.bias[i]); });
    } else if (t.bias != nullptr) {
      each([&](auto, auto v, Vf& x) { x = x + load_column<panel>(t.bias, v, t.columns); });
    }
    if (t.residual != nullptr) {
      each([&](auto i, auto v, Vf& x) { x = x + load_column<panel>(t.residual + i * t.stride, v, t.columns); });
    }
    const Vf lo = set(t.bounds.lo), hi = set(t.bounds.hi);
    each([&](auto, auto, Vf& x) { x = clamp(x, lo, hi); });
  }
  each([&](auto i, auto v, Vf& x) {
    float* at = t.dst + i * t.stride + v * lanes;
    if (v + 1 < panel || t.columns == lanes) {
      store(at, x);
    } else {
      store_n(at, x, t.columns);
    }
  });
}

}  // namespace softneuro::SN_ISA
