// Products of so few tiles that a row of positions has its sums in registers: weights are transformed on the way from
// the taps to the multiplications and never stored. See winograd.h.
#pragma once

#include "kernels/winograd/weights.h"
#include "simd/hold.h"

namespace softneuro::SN_ISA {
namespace winograd {

// Maps of up to twice the tile, as the last layers of networks for images have.
constexpr int few_positions = 6, few_taps = 3, few_tiles = 4;
constexpr int few_lines = 3;  // of what comes next, fetched per two channels and row of positions
static_assert(few_lines * 16 * few_positions == 2 * few_taps * few_taps * 16);
constexpr bool has_few_tiles = few_positions * few_tiles + 8 <= registers;

struct FewTiles {
  const float* src;  // [block][tile][lane] of the row's first position
  size_t src_position, src_block;
  const float* taps;  // [channel][tap][lane]
  int blocks;
  bool add;    // to dst; else dst is overwritten
  float* dst;  // [position][tile]
  size_t dst_position, dst_tile;
  const float* next;  // floats that will be read soon, few_lines of 16 per two channels
};

// Row `row` of G, down a column of taps.
template <int positions, int taps, int row>
SN_INLINE Vf weigh_column(const float* column) {
  Vf sum = row + 1 == positions ? load(column + (taps - 1) * taps * lanes) : load(column);
  if constexpr (row + 1 < positions) {
    unroll<taps - 1>([&](auto i) {
      constexpr int tap = decltype(i)::value + 1;
      sum = add_times(sum, Weight<positions, taps, row, tap>(), load(column + tap * taps * lanes));
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
  for (int cb = 0; cb < p.blocks; ++cb, src += p.src_block) {
    for (int lane = 0; lane < lanes; lane += 2, from += 2 * taps * taps * lanes, next += few_lines * 16) {
      unroll<2>([&](auto j) {
        prefetch_l2(next + j * 32);
        Vf g[taps], u[positions];
        unroll<taps>([&](auto s) { g[s] = weigh_column<positions, taps, row>(from + (j * taps * taps + s) * lanes); });
        in_order();
        if constexpr (j == 0) prefetch_l2(next + 16);
        transform(g, u);
        unroll<positions>([&](auto i) {
          const float* x = src + i * p.src_position + lane + j;
          unroll<tiles>([&](auto t) { sum[i * tiles + t] = fma(set(x[t * lanes]), u[i], sum[i * tiles + t]); });
        });
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
