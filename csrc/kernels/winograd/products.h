// The products of one position: encoded tiles times a panel of weights. See winograd.h.
#pragma once

#include "kernels/unroll.h"
#include "kernels/winograd/winograd.h"
#include "simd/hold.h"
#include "simd/simd.h"

namespace softneuro::SN_ISA {
namespace winograd {

constexpr int max_group = registers >= 32 ? 14 : 6;
// Floats from the weights in use to those being fetched.
constexpr int weights_ahead = 2048;

struct Product {
  const float* src;  // [block][tile][lane] from the group's first tile on
  size_t src_block;
  const float* weights;  // [channel][lane of panel]
  int blocks;
  bool add;  // to dst; else dst is overwritten
  float* dst;
  const float* next;  // what later products read, to be in L2 by then
  int fetch;          // floats of it for each channel, of which one line is fetched
};

template <int tiles, int panel, bool fetch>
SN_INLINE void accumulate(Vf (&sum)[tiles * panel], const float* src, const float* weights) {
  Vf w[panel];
  unroll<panel>([&](int b) { w[b] = load(weights + b * lanes); });
  constexpr int each = tiles / panel > 0 ? tiles / panel : 1;
  unroll<tiles>([&](auto t) {
    const Vf x = set(src[t * lanes]);
    if constexpr (fetch && t % each == 0 && t / each < panel) {
      prefetch(weights + t / each * lanes + weights_ahead);
      in_order();
    }
    unroll<panel>([&](int b) { sum[t * panel + b] = fma(x, w[b], sum[t * panel + b]); });
  });
}

template <int tiles, int panel, bool fetch>
[[gnu::flatten]] void multiply(const Product& p) {
  Vf sum[tiles * panel];
  if (p.add) {
    unroll<tiles * panel>([&](int i) { sum[i] = load(p.dst + i * lanes); });
  } else {
    unroll<tiles * panel>([&](int i) { sum[i] = zero(); });
  }
  const float *src = p.src, *weights = p.weights;
  const float* next = p.next;
  for (int cb = 0; cb < p.blocks; ++cb, src += p.src_block) {
    for (int lane = 0; lane < lanes; lane += 4) {
      unroll<4>([&](auto j) {
        accumulate<tiles, panel, fetch>(sum, src + lane + j, weights + j * panel * lanes);
        prefetch_l2(next + j * p.fetch);
        in_order();
      });
      weights += 4 * panel * lanes;
      next += 4 * p.fetch;
    }
  }
  unroll<tiles * panel>([&](int i) { store(p.dst + i * lanes, sum[i]); });
}

using Multiply = void (*)(const Product&);
struct ProductTable {
  Multiply multiply[winograd_panel + 1][max_group + 1][2] = {};
};
constexpr ProductTable product_table() {
  ProductTable table;
  unroll<winograd_panel>([&](auto b) {
    unroll<max_group>([&](auto t) {
      table.multiply[b + 1][t + 1][0] = winograd::multiply<t + 1, b + 1, false>;
      table.multiply[b + 1][t + 1][1] = winograd::multiply<t + 1, b + 1, true>;
    });
  });
  return table;
}
constexpr ProductTable products = product_table();

}  // namespace winograd
}  // namespace softneuro::SN_ISA
