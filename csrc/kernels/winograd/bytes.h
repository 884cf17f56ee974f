// Blobs of bytes whose channels are side by side: bytes become floats as a tile's rows are encoded, and decoded sums
// become elements once a tile has all of them. See winograd.h and generic.h.
#pragma once

#include "kernels/store/sums.h"
#include "kernels/winograd/multiply_block.h"
#include "kernels/winograd/tile.h"
#include "kernels/winograd/tile_sums.h"

namespace softneuro::SN_ISA {
namespace winograd {

// Rows of whole numbers of steps, which all transforms keep apart from the scale.
struct EncodeBytes {
  const uint8_t* src;  // row 0, column 0 of the tile, which may lie outside the image
  ptrdiff_t src_row, src_pixel;
  int channels;  // that there are in the block
  float zero;
  int row_begin, row_end, column_begin, column_end;  // of the tile that are inside
  int rows;
  float* dst;  // [row][position][lane]
};
template <WinogradAxis axis>
[[gnu::flatten]] void encode_bytes(const EncodeBytes& a) {
  constexpr int positions = axis.positions();
  float* dst = a.dst;
  const Vf zero_point = set(a.zero);
  for (int y = 0; y < a.rows; ++y, dst += positions * lanes) {
    Vf d[positions], v[positions];
    if (y < a.row_begin || y >= a.row_end) {
      unroll<positions>([&](auto x) { store(dst + x * lanes, zero()); });
      continue;
    }
    const uint8_t* const src = a.src + y * a.src_row;
    if (a.column_begin == 0 && a.column_end == positions && a.channels == lanes) {
      unroll<positions>([&](auto x) { d[x] = load(src + x * a.src_pixel) - zero_point; });
    } else {
      unroll<positions>([&](int x) {
        d[x] = zero();
        if (x >= a.column_begin && x < a.column_end) d[x] = load_n(src + x * a.src_pixel, a.channels) - zero_point;
      });
    }
    encode_axis<axis>(d, v);
    unroll<positions>([&](auto x) { store(dst + x * lanes, v[x]); });
  }
}

struct EncodeBytesTable {
  void (*at[max_stride][max_kernel][max_tile])(const EncodeBytes&) = {};  // less one each
};
constexpr EncodeBytesTable encode_bytes_table() {
  EncodeBytesTable table;
  unroll<max_stride * max_kernel * max_tile>([&](auto i) {
    constexpr int tile = i % max_tile + 1, kernel = i / max_tile % max_kernel + 1,
                  stride = i / max_tile / max_kernel + 1;
    if constexpr (has_transform(tile, kernel, stride)) {
      table.at[stride - 1][kernel - 1][tile - 1] =
          winograd::encode_bytes<encoded_axis(WinogradAxis{tile, kernel, stride})>;
    }
  });
  return table;
}
constexpr EncodeBytesTable encoding_bytes = encode_bytes_table();

using EndOfTiles = EndOfSums<TileSums, winograd_panel, sums_of_block>;

inline void encode_block_of_bytes(const WinogradArgs& args, const Plan& plan, int group, int first, int count) {
  const WinogradShape& s = args.shape;
  const auto encode = encoding_bytes.at[s.stride_w - 1][s.kernel_w - 1][s.tile_w - 1];
  const auto encode_columns = along(s.across_rows()).encode_columns;
  EncodeBytes a;
  a.src_pixel = static_cast<ptrdiff_t>(s.groups) * s.in_channels;
  a.src_row = a.src_pixel * s.w;
  a.zero = args.src_zero;
  a.rows = s.positions_h();
  a.dst = plan.tile;
  EncodeColumns b{plan.tile, s.positions_w(), plan.encoded, plan.encoded_position};
  for (int cb = 0; cb < plan.in_blocks; ++cb) {
    const int channel = cb * lanes;
    a.channels = s.in_channels - channel < lanes ? s.in_channels - channel : lanes;
    for (int t = 0; t < count; ++t, b.dst += lanes) {
      const Tile tile = find_tile(s, first + t);
      const ptrdiff_t pixel = find_inputs(s, tile, a);
      a.src = static_cast<const uint8_t*>(args.src) + tile.image * args.src_image + pixel * a.src_pixel +
              group * s.in_channels + channel;
      encode(a);
      encode_columns(b);
    }
  }
}

inline void decode_block_of_bytes(const WinogradArgs& args, const Plan& plan, const EndOfTiles& end, int out_block,
                                  int panel, int tail, int first, int count) {
  const WinogradShape& s = args.shape;
  const auto decode_columns = along(s.across_rows()).decode_columns;
  const auto decode_rows = along(s.along_rows()).decode_rows;
  const ptrdiff_t row = static_cast<ptrdiff_t>(s.tile_w) * lanes;
  const ptrdiff_t channels = static_cast<ptrdiff_t>(s.groups) * s.out_channels;
  DecodeRows b;
  b.src = plan.tile;
  b.dst_row = static_cast<size_t>(row);
  b.residual = b.bias = nullptr;
  TileSums sums;
  sums.stride = lanes;
  sums.columns = (panel - 1) * lanes + tail;
  sums.column = out_block * lanes;
  for (int t = 0; t < count; ++t) {
    const Tile tile = find_tile(s, first + t);
    b.rows = s.out_h - tile.y < s.tile_h ? s.out_h - tile.y : s.tile_h;
    b.columns = sums.rows = s.out_w - tile.x < s.tile_w ? s.out_w - tile.x : s.tile_w;
    for (int i = 0; i < panel; ++i) {
      b.dst = plan.sums + static_cast<ptrdiff_t>(i) * sums_of_block;
      decode_columns({plan.product + (t * panel + i) * lanes, plan.product_position, s.positions_w(), plan.tile});
      decode_rows(b);
    }
    for (int y = 0; y < b.rows; ++y) {
      const ptrdiff_t pixel = static_cast<ptrdiff_t>(tile.y + y) * s.out_w + tile.x;
      sums.at = plan.sums + y * row;
      sums.dst = tile.image * args.dst_image + pixel * channels + sums.column;
      sums.residual = tile.image * args.residual_image + pixel * channels + sums.column;
      end.finish(sums);
    }
  }
}

}  // namespace winograd
}  // namespace softneuro::SN_ISA
