// A tile's transforms: passes along one axis, in which the other axis is a loop. `rows` run along the image's rows.
#pragma once

#include "kernels/store/policy.h"
#include "kernels/winograd/passes.h"
#include "kernels/winograd/places.h"
#include "kernels/winograd/winograd.h"

namespace softneuro::SN_ISA {
namespace winograd {

alignas(64) constexpr float zeros[lanes] = {};

struct EncodeRows {
  const float* src;  // row 0, column 0 of the tile, which may lie outside the image
  size_t src_row;
  int row_begin, row_end, column_begin, column_end;  // of the tile that are inside
  int rows;
  float* dst;  // [row][position][lane]
};
template <WinogradAxis axis>
[[gnu::flatten]] void encode_rows(const EncodeRows& a) {
  constexpr int positions = axis.positions();
  float* dst = a.dst;
  for (int y = 0; y < a.rows; ++y, dst += positions * lanes) {
    Vf d[positions], v[positions];
    if (y < a.row_begin || y >= a.row_end) {
      unroll<positions>([&](auto x) { store(dst + x * lanes, zero()); });
      continue;
    }
    const float* src = a.src + static_cast<ptrdiff_t>(y * a.src_row);
    if (a.column_begin == 0 && a.column_end == positions) {
      unroll<positions>([&](auto x) { d[x] = load(src + x * lanes); });
    } else {
      unroll<positions>([&](int x) { d[x] = load(x >= a.column_begin && x < a.column_end ? src + x * lanes : zeros); });
    }
    encode_axis<axis>(d, v);
    unroll<positions>([&](auto x) { store(dst + x * lanes, v[x]); });
  }
}

struct EncodeColumns {
  const float* src;  // of encode_rows
  int columns;
  float* dst;  // position 0
  size_t dst_position;
};
template <WinogradAxis axis>
[[gnu::flatten]] void encode_columns(const EncodeColumns& a) {
  constexpr int positions = axis.positions();
  for (int x = 0; x < a.columns; ++x) {
    Vf d[positions], v[positions];
    const float* src = a.src + x * lanes;
    unroll<positions>([&](auto y) { d[y] = load(src + y * a.columns * lanes); });
    encode_axis<axis>(d, v);
    float* dst = a.dst + x * a.dst_position;
    unroll<positions>([&](auto y) { store(dst + y * a.columns * a.dst_position, v[y]); });
  }
}

struct DecodeColumns {
  const float* src;  // position 0
  size_t src_position;
  int columns;
  float* dst;  // [row][position][lane]
};
template <WinogradAxis axis>
[[gnu::flatten]] void decode_columns(const DecodeColumns& a) {
  constexpr int outputs = axis.tile, positions = axis.positions();
  for (int x = 0; x < a.columns; ++x) {
    Vf m[positions], y[outputs];
    const float* src = a.src + x * a.src_position;
    unroll<positions>([&](auto i) { m[i] = load(src + i * a.columns * a.src_position); });
    decode_axis<axis>(m, y);
    unroll<outputs>([&](auto i) { store(a.dst + (i * a.columns + x) * lanes, y[i]); });
  }
}

struct DecodeRows {
  const float* src;   // of decode_columns
  int rows, columns;  // of the tile that are inside the output
  float* dst;
  size_t dst_row;
  const float* residual;  // null: none
  const float* bias;      // null: zero
  ClampBounds bounds;
};
template <WinogradAxis axis>
[[gnu::flatten]] void decode_rows(const DecodeRows& a) {
  constexpr int outputs = axis.tile, positions = axis.positions();
  const Vf bias = a.bias != nullptr ? load(a.bias) : zero(), lo = set(a.bounds.lo), hi = set(a.bounds.hi);
  for (int row = 0; row < a.rows; ++row) {
    Vf m[positions], y[outputs];
    unroll<positions>([&](auto i) { m[i] = load(a.src + (row * positions + i) * lanes); });
    decode_axis<axis>(m, y);
    unroll<outputs>([&](auto i) { y[i] = y[i] + bias; });
    float* dst = a.dst + row * a.dst_row;
    if (a.residual != nullptr) {
      const float* residual = a.residual + row * a.dst_row;
      unroll<outputs>([&](auto i) {
        if (i < a.columns) y[i] = y[i] + Reading<float>().value(residual + i * lanes);
      });
    }
    unroll<outputs>([&](auto i) {
      if (i < a.columns) Writing<float>().put(dst + i * lanes, clamp(y[i], lo, hi));
    });
  }
}

constexpr int max_tile = 8, max_kernel = 7, max_stride = 2;
constexpr bool has_transform(int tile, int kernel, int stride) {
  if (kernel == 1) return tile == 1 && stride >= 1 && stride <= max_stride;
  if (tile < 2 || tile > max_tile || kernel < 2 || kernel > max_kernel) return false;
  const int positions = WinogradAxis{tile, kernel, stride}.positions();
  return (stride == 1 && positions <= winograd_max_positions) ||
         (stride == 2 && kernel % 2 == 1 && positions <= winograd_max_axis);
}

// The axis whose encoding is the same: with a single phase B' depends on the number of positions only.
constexpr WinogradAxis encoded_axis(WinogradAxis axis) {
  return axis.stride > 1 || axis.taps == 1 ? axis : WinogradAxis{axis.positions() - 1, 2, 1};
}

// The steps along one axis.
struct Passes {
  void (*encode_rows)(const EncodeRows&) = nullptr;
  void (*encode_columns)(const EncodeColumns&) = nullptr;
  void (*decode_columns)(const DecodeColumns&) = nullptr;
  void (*decode_rows)(const DecodeRows&) = nullptr;
};
struct PassTable {
  Passes at[max_stride][max_kernel][max_tile];  // less one each
};
constexpr PassTable pass_table() {
  PassTable table;
  unroll<max_stride * max_kernel * max_tile>([&](auto i) {
    constexpr int tile = i % max_tile + 1, kernel = i / max_tile % max_kernel + 1,
                  stride = i / max_tile / max_kernel + 1;
    if constexpr (has_transform(tile, kernel, stride)) {
      constexpr WinogradAxis axis{tile, kernel, stride};
      constexpr WinogradAxis encoded = encoded_axis(axis);
      table.at[stride - 1][kernel - 1][tile - 1] = {winograd::encode_rows<encoded>, winograd::encode_columns<encoded>,
                                                    winograd::decode_columns<axis>, winograd::decode_rows<axis>};
    }
  });
  return table;
}
constexpr PassTable passes = pass_table();
SN_INLINE const Passes& along(const WinogradAxis& a) { return passes.at[a.stride - 1][a.taps - 1][a.tile - 1]; }

}  // namespace winograd
}  // namespace softneuro::SN_ISA
