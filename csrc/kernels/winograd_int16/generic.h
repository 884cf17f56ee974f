// Blocks of tiles are encoded, multiplied panel by panel, and decoded while they are in L2. See winograd_int16.h.
//
//   encoded   [position][input block][tile][channel], numbers of 16 bits, positions an odd number of lines apart
//   products  [position][tile][lane of panel], floats, the same
//   tile      [row][column][channel or lane]: what one pass along rows or columns leaves to the next
//   sums      [output block][row][column][lane]: a tile's decoded sums
#pragma once

#include "kernels/store/sums.h"
#include "kernels/unroll.h"
#include "kernels/winograd/places.h"
#include "kernels/winograd/tile_sums.h"
#include "kernels/winograd_int16/inputs.h"
#include "kernels/winograd_int16/products.h"

namespace softneuro::SN_ISA {
namespace winograd_int16 {

using winograd::find_tile;
using winograd::Tile;
using winograd::TileSums;

// A' m.
SN_INLINE void decode_axis(const Vf (&m)[4], Vf (&y)[2]) {
  y[0] = m[0] + m[1] + m[2];
  y[1] = m[1] - m[2] - m[3];
}
SN_INLINE void decode_axis(const Vf (&m)[6], Vf (&y)[4]) {
  const Vf even = m[1] + m[2], odd = m[1] - m[2], far_even = m[3] + m[4], far_odd = m[3] - m[4];
  y[0] = m[0] + even + far_even;
  y[1] = fma(set(2), far_odd, odd);
  y[2] = fma(set(4), far_even, even);
  y[3] = fma(set(8), far_odd, odd) + m[5];
}

struct DecodeColumns {
  const float* src;  // position 0
  size_t src_position;
  int columns;
  float* dst;  // [row][position][lane]
};
template <int tile>
[[gnu::flatten]] void decode_columns(const DecodeColumns& a) {
  for (int x = 0; x < a.columns; ++x) {
    Vf m[tile + 2], y[tile];
    const float* const src = a.src + x * a.src_position;
    unroll<tile + 2>([&](auto i) { m[i] = load(src + i * a.columns * a.src_position); });
    decode_axis(m, y);
    unroll<tile>([&](auto i) { store(a.dst + (i * a.columns + x) * lanes, y[i]); });
  }
}
template <int tile>
[[gnu::flatten]] void decode_rows(const float* src, int rows, float* dst) {
  for (int row = 0; row < rows; ++row, src += (tile + 2) * lanes, dst += tile * lanes) {
    Vf m[tile + 2], y[tile];
    unroll<tile + 2>([&](auto i) { m[i] = load(src + i * lanes); });
    decode_axis(m, y);
    unroll<tile>([&](auto i) { store(dst + i * lanes, y[i]); });
  }
}

using EndOfTiles = EndOfSums<TileSums, winograd_panel, sums_of_block>;

inline void decode_block(const WinogradInt16Args& args, const Plan& plan, const EndOfTiles& end, int out_block,
                         int panel, int tail, int first, int count) {
  const WinogradShape& s = args.shape;
  const auto columns = s.tile_h == 2 ? decode_columns<2> : decode_columns<4>;
  const auto rows = s.tile_w == 2 ? decode_rows<2> : decode_rows<4>;
  const ptrdiff_t row = static_cast<ptrdiff_t>(s.tile_w) * lanes;
  const ptrdiff_t pixel_channels = static_cast<ptrdiff_t>(s.groups) * s.out_channels;
  TileSums sums;
  sums.stride = lanes;
  sums.columns = (panel - 1) * lanes + tail;
  sums.column = out_block * lanes;
  for (int t = 0; t < count; ++t) {
    const Tile tile = find_tile(s, first + t);
    const int inside = s.out_h - tile.y < s.tile_h ? s.out_h - tile.y : s.tile_h;
    sums.rows = s.out_w - tile.x < s.tile_w ? s.out_w - tile.x : s.tile_w;
    for (int i = 0; i < panel; ++i) {
      columns({plan.product + (t * panel + i) * lanes, plan.product_position, s.positions_w(), plan.tile});
      rows(plan.tile, inside, plan.sums + static_cast<ptrdiff_t>(i) * sums_of_block);
    }
    for (int y = 0; y < inside; ++y) {
      const ptrdiff_t pixel = static_cast<ptrdiff_t>(tile.y + y) * s.out_w + tile.x;
      sums.at = plan.sums + y * row;
      sums.dst = tile.image * args.dst_image + pixel * pixel_channels + sums.column;
      sums.residual = tile.image * args.residual_image + pixel * pixel_channels + sums.column;
      end.finish(sums);
    }
  }
}

inline size_t scratch_bytes(const WinogradShape& s, int block) { return Plan(s, block).floats * sizeof(float); }

inline void run(const WinogradInt16Args& args, int panel_begin, int panel_end, int tile_begin, int tile_end,
                void* scratch) {
  const WinogradShape& s = args.shape;
  const Plan plan(s, args.block, scratch);
  const EndOfTiles end(args.epilogue, args.dst, static_cast<ptrdiff_t>(s.groups) * s.out_channels);
  const int per_group = ceil_div(plan.out_blocks, winograd_panel);
  const size_t per_block = (static_cast<size_t>(plan.in_blocks) * lanes + 1) * lanes * s.positions();
  const int total = tile_end - tile_begin, blocks = ceil_div(total, args.block);
  for (int i = 0, first = tile_begin; i < blocks; ++i) {
    const int count = total / blocks + (i < total % blocks ? 1 : 0);
    int group = -1;
    for (int index = panel_begin; index < panel_end; ++index) {
      const int first_block = index % per_group * winograd_panel;
      if (index / per_group != group) {
        group = index / per_group;
        encode_block(args, plan, group, first, count);
      }
      const int left = plan.out_blocks - first_block, panel = left < winograd_panel ? left : winograd_panel;
      const int out_block = group * plan.out_blocks + first_block;
      const int tail = left > panel ? lanes : s.out_channels - (plan.out_blocks - 1) * lanes;
      multiply_block(plan, args.weights + out_block * per_block, s.positions(), panel, count);
      decode_block(args, plan, end, out_block, panel, tail, first, count);
    }
    first += count;
  }
}

}  // namespace winograd_int16
}  // namespace softneuro::SN_ISA

namespace softneuro {

SN_KERNEL_TABLE(WinogradInt16Kernels, winograd_int16) = {
    .block = SN_ISA::lanes,
    .max_group = SN_ISA::winograd_int16::max_group,
    .scratch_bytes = SN_ISA::winograd_int16::scratch_bytes,
    .run = SN_ISA::winograd_int16::run,
};

}  // namespace softneuro
