// conv_strassen's links: products whose sums stay in registers from one to the next.
#pragma once

#include "kernels/conv_strassen/conv_strassen.h"
#include "kernels/integers.h"
#include "kernels/store/tiles.h"
#include "kernels/unroll.h"
#include "simd/hold.h"

namespace softneuro::SN_ISA {
namespace conv_strassen {

constexpr int max_panel = registers >= 32 ? 4 : 3;
constexpr int max_tile(int panel) {
  if (registers < 32) return 12 / panel;
  return panel == 1 ? 14 : panel == 2 ? 13 : panel == 3 ? 9 : 6;  // g++ 12 spills sums of 14 x 2
}
// Floats from the weights in use to those being fetched.
constexpr int weights_ahead = 2048;
// Floats of a tile of sums in L1; a block of the panel is block_floats after the one before.
constexpr int tile_floats = 28 * lanes;
constexpr int block_floats(int panel) { return max_tile(panel) * lanes; }

// Two products one after the other in the same registers:
//   sum = start + a[0] * w[0], to middle;  sum + add + a[1] * w[1], to dst
struct Link {
  const float* start;
  const float* a[2];      // pixel 0
  size_t a_block[2];      // floats from input block to input block
  const float* ahead[2];  // pixels that are wanted in L2 soon, as many as the tile has; null: none
  size_t ahead_block;
  const float* w[2];
  int blocks[2];
  float* middle;     // null: nowhere
  const float* add;  // null: nothing
  float* dst;
  size_t dst_block;
  const float* residual;
  bool last;  // finish; else only store the sums
  const Activation* activation;
  const float* next;  // weights that are wanted in L2 by later tiles
  int fetch;          // floats of them for each input channel, of which one line is fetched
};

// One input channel: a broadcast per pixel, used by every block of the panel. far: weights are fetched, a line at a
// time, as a burst would take all the buffers that lines come through.
template <int tile, int panel, bool far>
SN_INLINE void accumulate(Vf (&sum)[tile * panel], const float* a, const float* w, const float* next) {
  Vf v[panel];
  unroll<panel>([&](auto b) __attribute__((always_inline)) { v[b] = load(w + b * lanes); });
  constexpr int each = tile / panel > 0 ? tile / panel : 1;  // pixels from line to line
  unroll<tile>([&](auto p) __attribute__((always_inline)) {
    const Vf x = set(a[p * lanes]);
    if constexpr (far && p % each == 0 && p / each < panel) {
      prefetch(w + p / each * lanes + weights_ahead);
      in_order();
    }
    unroll<panel>([&](auto b) __attribute__((always_inline)) {
      Vf& y = sum[b * tile + p];
      y = fma(x, v[b], y);
    });
  });
  if constexpr (far) {
    prefetch_l2(next);
    in_order();
  }
}

template <int tile, int panel, bool far>
SN_INLINE void multiply(Vf (&sum)[tile * panel], const Link& l, int product, const float*& next) {
  const float *a = l.a[product], *w = l.w[product], *ahead = l.ahead[product];
  const size_t a_block = l.a_block[product];
  for (int cb = 0; cb < l.blocks[product]; ++cb, a += a_block) {
    // The next block, then the next tile, never past the blob: there the lines that another task writes may be.
    const float* soon = cb + 1 < l.blocks[product] ? a + a_block : l.a[product] + tile * lanes;
    for (int p = 0; p < tile; ++p) prefetch(soon + p * lanes);
    if (ahead != nullptr) {
      for (int p = 0; p < tile; ++p) prefetch_l2(ahead + p * lanes);
      ahead += l.ahead_block;
    }
    for (int c = 0; c < lanes; c += 4, w += 4 * panel * lanes, next += 4 * l.fetch) {
      unroll<4>([&](auto j) __attribute__((always_inline)) {
        accumulate<tile, panel, far>(sum, a + c + j, w + j * panel * lanes, next + j * l.fetch);
      });
    }
  }
}

template <int tile, int panel, bool far>
[[gnu::flatten]] void compute_link(const Link& l) {
  Vf sum[tile * panel];
  const auto each = [&](const auto& body) __attribute__((always_inline)) {
    unroll<panel>([&](auto b) __attribute__((always_inline)) {
      unroll<tile>(
          [&](auto p) __attribute__((always_inline)) { body(b * block_floats(panel) + p * lanes, sum[b * tile + p]); });
    });
  };
  const float* next = l.next;
  each([&](int at, Vf& x) __attribute__((always_inline)) { x = load(l.start + at); });
  // A loop: of two copies of the products g++ 12 spills sums.
  for (int product = 0;; ++product) {
    multiply<tile, panel, far>(sum, l, product, next);
    if (product == 1) break;
    if (l.middle != nullptr) each([&](int at, const Vf& x) __attribute__((always_inline)) { store(l.middle + at, x); });
    if (l.add != nullptr) each([&](int at, Vf& x) __attribute__((always_inline)) { x = x + load(l.add + at); });
  }
  if (!l.last) {
    each([&](int at, const Vf& x) __attribute__((always_inline)) { store(l.dst + at, x); });
    return;
  }
  finish_tile<panel, tile>(sum, true, l.activation, l.dst, l.residual, l.dst_block, lanes);
}

using ComputeLink = void (*)(const Link&);
struct LinkTable {
  ComputeLink compute[2][max_panel + 1][max_tile(1) + 1] = {};  // [far]
};
constexpr LinkTable link_table() {
  LinkTable table;
  unroll<max_panel>([&](auto b) {
    constexpr int panel = b + 1;
    unroll<max_tile(panel)>([&](auto p) {
      table.compute[0][panel][p + 1] = compute_link<p + 1, panel, false>;
      table.compute[1][panel][p + 1] = compute_link<p + 1, panel, true>;
    });
  });
  return table;
}
constexpr LinkTable links = link_table();

}  // namespace conv_strassen
}  // namespace softneuro::SN_ISA
