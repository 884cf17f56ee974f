// The stages over Vf, each tile and channel block by the two passes of kernels/winograd through a buffer in L1. The
// matrices are as large as a cache or larger: a tile's channel blocks are taken in turn, so that each position is a
// stream, and the passes that touch them ask for the lines to come. Contract: winograd_stages.h.
#pragma once

#include "kernels/store/rest.h"
#include "kernels/store/tiles.h"
#include "kernels/winograd/tile.h"
#include "kernels/winograd_stages/winograd_stages.h"

namespace softneuro::SN_ISA {
namespace winograd_stages {

using winograd::find_inputs;
using winograd::find_tile;
using winograd::max_kernel;
using winograd::max_tile;
using winograd::Tile;

// Floats from the products in use to those being fetched.
constexpr int decode_ahead = 2 * lanes;
// L2 has more lines under way at once than L1: 512 channels come from memory in three quarters of the time (Zen 4).
SN_INLINE void prefetch_into_l2(const float* p) { __builtin_prefetch(p, 0, 2); }

// [row][column][lane]: what is between the passes.
struct alignas(64) Buffer {
  float at[winograd_max_positions * winograd_max_positions * lanes];
};

template <WinogradAxis axis, bool past_caches>
[[gnu::flatten]] void encode_columns(const float* src, int columns, float* dst, int64_t dst_position) {
  constexpr int positions = axis.positions();
  for (int x = 0; x < columns; ++x, src += lanes, dst += dst_position) {
    Vf d[positions], v[positions];
    unroll<positions>([&](auto y) { d[y] = load(src + y * columns * lanes); });
    winograd::encode_axis<axis>(d, v);
    unroll<positions>([&](auto y) {
      float* to = dst + y * columns * dst_position;
      if constexpr (past_caches) {
        stream(to, v[y]);
      } else {
        store(to, v[y]);
        prefetch_to_write(to + lanes);
      }
    });
  }
}

template <WinogradAxis axis>
[[gnu::flatten]] void decode_columns(const float* src, int64_t src_position, int columns, float* dst) {
  constexpr int outputs = axis.tile, positions = axis.positions();
  for (int x = 0; x < columns; ++x, src += src_position, dst += lanes) {
    Vf m[positions], y[outputs];
    unroll<positions>([&](auto i) {
      const float* from = src + i * columns * src_position;
      m[i] = load(from);
      prefetch_into_l2(from + decode_ahead);
    });
    winograd::decode_axis<axis>(m, y);
    unroll<outputs>([&](auto i) { store(dst + i * columns * lanes, y[i]); });
  }
}

struct Columns {
  void (*encode[2])(const float*, int, float*, int64_t) = {};  // past the caches: [1]
  void (*decode)(const float*, int64_t, int, float*) = nullptr;
};
struct ColumnTable {
  Columns at[max_kernel][max_tile];  // less one each
};
constexpr ColumnTable column_table() {
  ColumnTable table;
  unroll<max_kernel * max_tile>([&](auto i) {
    constexpr int tile = i % max_tile + 1, kernel = i / max_tile + 1;
    if constexpr (winograd::has_transform(tile, kernel, 1)) {
      constexpr WinogradAxis axis{tile, kernel, 1};
      // B' depends on the number of positions only.
      constexpr WinogradAxis encoded = kernel == 1 ? axis : WinogradAxis{axis.positions() - 1, 2, 1};
      table.at[kernel - 1][tile - 1] = {{encode_columns<encoded, false>, encode_columns<encoded, true>},
                                        decode_columns<axis>};
    }
  });
  return table;
}
constexpr ColumnTable column_passes = column_table();
SN_INLINE const Columns& columns_of(const WinogradShape& s) { return column_passes.at[s.kernel_h - 1][s.tile_h - 1]; }

inline void encode(const WinogradEncodeArgs& args, int tile_begin, int tile_end) {
  const WinogradShape& s = args.shape;
  const int columns = s.positions_w();
  const size_t plane = static_cast<size_t>(s.h) * s.w * lanes;
  const auto encode_rows = winograd::along(s.along_rows()).encode_rows;
  const auto encode_columns = columns_of(s).encode[args.past_caches];
  Buffer between;
  winograd::EncodeRows a;
  a.src_row = static_cast<size_t>(s.w) * lanes;
  a.rows = s.positions_h();
  a.dst = between.at;
  for (int t = tile_begin; t < tile_end; ++t) {
    const Tile tile = find_tile(s, t);
    const ptrdiff_t pixel = find_inputs(s, tile, a);
    a.src = args.src + tile.image * args.src_image + pixel * lanes;
    float* dst = args.dst + static_cast<int64_t>(t) * s.in_channels;
    for (int c = 0; c < s.in_channels; c += lanes, a.src += plane) {
      encode_rows(a);
      encode_columns(between.at, columns, dst + c, args.dst_position);
    }
  }
}

inline void decode(const WinogradDecodeArgs& args, int tile_begin, int tile_end) {
  const WinogradShape& s = args.shape;
  const Epilogue& epilogue = args.epilogue;
  const float* residual = epilogue.residual.f32();
  const size_t plane = static_cast<size_t>(s.out_h) * s.out_w * lanes;
  const auto decode_rows = winograd::along(s.along_rows()).decode_rows;
  const auto decode_columns = columns_of(s).decode;
  Buffer between;
  winograd::DecodeRows b;
  b.src = between.at;
  b.dst_row = static_cast<size_t>(s.out_w) * lanes;
  b.bounds = clamp_bounds(epilogue.activation);
  for (int t = tile_begin; t < tile_end; ++t) {
    const Tile tile = find_tile(s, t);
    b.rows = s.out_h - tile.y < s.tile_h ? s.out_h - tile.y : s.tile_h;
    b.columns = s.out_w - tile.x < s.tile_w ? s.out_w - tile.x : s.tile_w;
    const float* src = args.src + static_cast<int64_t>(t) * s.out_channels;
    size_t at = (static_cast<size_t>(tile.y) * s.out_w + tile.x) * lanes;
    for (int k = 0; k < s.out_channels; k += lanes, at += plane) {
      b.dst = args.dst + tile.image * args.dst_image + at;
      b.residual = residual != nullptr ? residual + tile.image * args.residual_image + at : nullptr;
      b.bias = epilogue.bias != nullptr ? epilogue.bias + k : nullptr;
      decode_columns(src + k, args.src_position, s.positions_w(), between.at);
      decode_rows(b);
      if (is_clamp(epilogue.activation.kind)) continue;
      for (int y = 0; y < b.rows; ++y)
        finish_written(epilogue.activation, false, b.dst + y * b.dst_row, b.columns, lanes);
    }
  }
}

}  // namespace winograd_stages
}  // namespace softneuro::SN_ISA

namespace softneuro {

SN_KERNEL_TABLE(WinogradStages, winograd_stages) = {
    .block = SN_ISA::lanes,
    .encode = SN_ISA::winograd_stages::encode,
    .decode = SN_ISA::winograd_stages::decode,
};

}  // namespace softneuro
