// Products with additions for multiplications. See winograd.h and kernels/winograd_1968/pairs.h.
#pragma once

#include "kernels/winograd/multiply_block.h"
#include "kernels/winograd_1968/samples.h"

namespace softneuro::SN_ISA {
namespace winograd {

constexpr int added_group = registers >= 32 ? 16 : 8;  // tiles per step

// Encoded tiles, in place.
inline void prepare_tiles(const Plan& plan, int positions, int count) {
  winograd_1968::Pixels tiles{};
  tiles.distance = lanes;
  tiles.plane = static_cast<size_t>(count) * lanes;
  tiles.blocks = plan.in_blocks;
  for (int position = 0; position < positions; ++position) {
    for (int first = 0; first < count; first += lanes) {
      float* const at = plan.encoded + position * plan.encoded_position + first * lanes;
      tiles.count = count - first < lanes ? count - first : lanes;
      tiles.from = at;
      const int term = position * plan.terms + first;
      winograd_1968::prepare(tiles, at, tiles.plane, plan.start + term, plan.scale + term);
    }
  }
}

struct AddedProduct {
  const float* src;  // [block][tile][lane] from the group's first tile on
  size_t src_block;
  const float* weights;  // [channel][lane], then their terms
  int blocks;
  const float *start, *scale;  // of the tiles
  float* dst;
  const float* next;  // what later products read, to be in L2 by then
};

template <int tiles, bool fetch>
[[gnu::flatten]] void multiply_adding(const AddedProduct& p) {
  const float *src = p.src, *weights = p.weights, *next = p.next;
  const float* const terms = weights + static_cast<size_t>(p.blocks) * lanes * lanes;
  const Vf start = load(terms);
  Vf sum[tiles];
  unroll<tiles>([&](int t) { sum[t] = start + set(p.start[t]); });
  for (int cb = 0; cb < p.blocks; ++cb, src += p.src_block, weights += lanes * lanes) {
    for (int t = 0; t < tiles; ++t) prefetch(src + p.src_block + t * lanes);
    if constexpr (fetch) {
      for (int i = 0; i < lanes * lanes; i += 16) prefetch_l2(next + i);
      next += lanes * lanes;
    }
    winograd_1968::multiply_block<tiles>(sum, src, weights);
  }
  const Vf scale = load(terms + lanes);
  unroll<tiles>([&](int t) { store(p.dst + t * lanes, sum[t] * scale * set(p.scale[t])); });
}

using MultiplyAdding = void (*)(const AddedProduct&);
struct AddedTable {
  MultiplyAdding multiply[2][added_group];  // [fetch][tiles - 1]
};
template <int most>
constexpr AddedTable added_table() {
  return [&]<int... i>(Indices<i...>) -> AddedTable {
    return {{{multiply_adding<i + 1, false>...}, {multiply_adding<i + 1, true>...}}};
  }(Indices<__integer_pack(most)...>{});
}
constexpr AddedTable added = added_table<added_group>();

// One output block's products at all positions.
inline void multiply_block_adding(const Plan& plan, const float* weights, size_t weight, int count) {
  const Sharing &rows = plan.across_rows, &columns = plan.along_rows;
  const int positions_w = columns.begin[columns.weights], steps = ceil_div(count, added_group);
  AddedProduct p;
  p.blocks = plan.in_blocks;
  p.src_block = static_cast<size_t>(count) * lanes;
  p.weights = weights;
  for (int i = 0; i < rows.weights; ++i) {
    for (int j = 0; j < columns.weights; ++j, p.weights += weight) {
      p.next = p.weights + weight;
      bool fetch = true;
      for (int y = rows.begin[i]; y < rows.begin[i + 1]; ++y) {
        for (int x = columns.begin[j]; x < columns.begin[j + 1]; ++x) {
          const int position = y * positions_w + x;
          const float* const src = plan.encoded + position * plan.encoded_position;
          for (int step = 0, first = 0; step < steps; ++step) {
            const int tiles = ceil_div(count - first, steps - step);
            p.src = src + first * lanes;
            p.start = plan.start + position * plan.terms + first;
            p.scale = plan.scale + position * plan.terms + first;
            p.dst = plan.product + position * plan.product_position + first * lanes;
            added.multiply[fetch][tiles - 1](p);
            fetch = false;
            first += tiles;
          }
        }
      }
    }
  }
}

}  // namespace winograd
}  // namespace softneuro::SN_ISA
