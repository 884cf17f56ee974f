// Products of so few tiles that a row of positions has its sums in registers: weights are transformed on the way from
// the taps to the multiplications and never stored. See winograd.h.
#pragma once

#include "kernels/winograd/weights.h"

namespace softneuro::SN_ISA {
namespace winograd {

// Maps of up to twice the tile, as the last layers of networks for images have.
constexpr int few_positions = 6, few_taps = 3, few_tiles = 4;
constexpr int few_lines = 2;  // of next weights fetched per channel and row, a little more than there are
constexpr bool has_few_tiles = few_positions * few_tiles + 8 <= registers;

struct FewTiles {
  const float* src;  // [block][tile][lane] of the row's first position
  size_t src_position, src_block;
  const float* taps;  // [channel][tap], `width` apart
  int width;
  int blocks;
  bool add;    // to dst; else dst is overwritten
  float* dst;  // [position][tile]
  size_t dst_position, dst_tile;
  const float* next;  // floats that will be read soon, few_lines of 16 per channel
};

// Row `row` of G, down a column of taps.
template <int positions, int taps, int row>
SN_INLINE Vf weigh_column(const float* column, int width) {
  Vf sum = row + 1 == positions ? load(column + (taps - 1) * taps * width) : load(column);
  if constexpr (row + 1 < positions) {
    unroll<taps - 1>([&](auto i) {
      constexpr int tap = decltype(i)::value + 1;
      sum = add_times(sum, Weight<positions, taps, row, tap>(), load(column + tap * taps * width));
    });
  }
  return sum;
}

template <int row, int tiles>
[[gnu::flatten]] void multiply_few(const FewTiles& p) {
  constexpr int positions = few_positions, taps = few_taps;
  Vf sum[positions * tiles];
  unroll<positions>([&](auto i) {
    unroll<tiles>(
        [&](auto t) { sum[i * tiles + t] = p.add ? load(p.dst + i * p.dst_position + t * p.dst_tile) : zero(); });
  });
  const float *src = p.src, *from = p.taps, *next = p.next;
  const int width = p.width;
  for (int cb = 0; cb < p.blocks; ++cb, src += p.src_block) {
    for (int lane = 0; lane < lanes; ++lane, from += taps * taps * width, next += few_lines * 16) {
      prefetch_l2(next), prefetch_l2(next + 16);
      Vf g[taps], u[positions];
      unroll<taps>([&](auto s) { g[s] = weigh_column<positions, taps, row>(from + s * width, width); });
      transform(g, u);
      unroll<positions>([&](auto i) {
        const float* x = src + i * p.src_position + lane;
        unroll<tiles>([&](auto t) { sum[i * tiles + t] = fma(set(x[t * lanes]), u[i], sum[i * tiles + t]); });
      });
    }
  }
  unroll<positions>([&](auto i) {
    unroll<tiles>([&](auto t) { store(p.dst + i * p.dst_position + t * p.dst_tile, sum[i * tiles + t]); });
  });
}

struct FewTable {
  void (*multiply[few_tiles + 1][few_positions])(const FewTiles&) = {};
};
constexpr FewTable few_table() {
  FewTable table;
  if constexpr (has_few_tiles) {
    unroll<few_tiles>([&](auto t) {
      unroll<few_positions>([&](auto row) { table.multiply[t + 1][row] = multiply_few<row, t + 1>; });
    });
  }
  return table;
}
constexpr FewTable few = few_table();

}  // namespace winograd
}  // namespace softneuro::SN_ISA
