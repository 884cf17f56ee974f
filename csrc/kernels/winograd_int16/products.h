// Encoded tiles are multiplied with the weights of a panel. See generic.h.
#pragma once

#include "kernels/unroll.h"
#include "kernels/winograd_int16/plan.h"
#include "simd/hold.h"

namespace softneuro::SN_ISA {
namespace winograd_int16 {

struct Product {
  const float* src;  // [block][tile][channel] from the group's first tile on
  size_t src_block;
  const float* weights;  // [pair][lane of panel], then what a unit is
  int blocks;
  float* dst;
  const float* next;  // what later products read, to be in L2 by then
  int fetch;          // floats of it for each pair
};

template <int tiles, int panel>
[[gnu::flatten]] void multiply(const Product& p) {
  const float *src = p.src, *weights = p.weights, *next = p.next;
  const float* const unit = weights + static_cast<size_t>(p.blocks) * lanes * panel * lanes;
  for (int first = 0; first < p.blocks; first += chunk) {
    Vi sum[tiles * panel];
    unroll<tiles * panel>([&](int i) { sum[i] = Vi{}; });
    const int end = p.blocks - first < chunk ? p.blocks - first : chunk;
    for (int cb = 0; cb < end; ++cb, src += p.src_block) {
      for (int lane = 0; lane < lanes; lane += 4) {
        unroll<4>([&](auto j) {
          Halves w[panel];
          unroll<panel>([&](int b) { w[b] = load_halves(weights + (j * panel + b) * lanes); });
          unroll<tiles>([&](auto t) {
            int32_t pair;
            __builtin_memcpy(&pair, src + lane + j + t * lanes, sizeof pair);
            const Halves x = (Halves)(Vi{} + pair);
            unroll<panel>([&](int b) { sum[t * panel + b] = hold_here(add_pair(sum[t * panel + b], x, w[b])); });
          });
          prefetch_l2(next + j * p.fetch);
          in_order();
        });
        weights += 4 * panel * lanes;
        next += 4 * p.fetch;
      }
    }
    unroll<tiles * panel>([&](int i) {
      const Vf x = to_float(sum[i]), u = load(unit + i % panel * lanes);
      store(p.dst + i * lanes, first == 0 ? x * u : fma(x, u, load(p.dst + i * lanes)));
    });
  }
}

using Multiply = void (*)(const Product&);
struct ProductTable {
  Multiply multiply[winograd_panel + 1][max_group + 1] = {};
};
constexpr ProductTable product_table() {
  ProductTable table;
  unroll<winograd_panel>([&](auto b) {
    unroll<max_group>([&](auto t) { table.multiply[b + 1][t + 1] = winograd_int16::multiply<t + 1, b + 1>; });
  });
  return table;
}
constexpr ProductTable products = product_table();

inline void multiply_block(const Plan& plan, const float* weights, int positions, int panel, int count) {
  const int groups = ceil_div(count, max_group), length = count / groups, longer = count % groups;
  const size_t position_weights = (static_cast<size_t>(plan.in_blocks) * lanes + 1) * panel * lanes;
  Product p;
  p.blocks = plan.in_blocks;
  p.src_block = static_cast<size_t>(count) * lanes;
  p.fetch = ceil_div(panel * lanes, groups);
  p.weights = weights;
  for (int position = 0; position < positions; ++position, p.weights += position_weights) {
    p.src = plan.encoded + position * plan.encoded_position;
    p.dst = plan.product + position * plan.product_position;
    p.next = p.weights + position_weights;
    for (int i = 0; i < groups; ++i) {
      const int tiles = length + (i < longer ? 1 : 0);
      products.multiply[panel][tiles](p);
      p.src += tiles * lanes;
      p.dst += tiles * panel * lanes;
      p.next += static_cast<ptrdiff_t>(plan.in_blocks) * lanes * p.fetch;
    }
  }
}

}  // namespace winograd_int16
}  // namespace softneuro::SN_ISA
