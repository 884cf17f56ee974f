// Tiles of bytes are encoded to numbers of 16 bits. See generic.h.
#pragma once

#include "kernels/unroll.h"
#include "kernels/winograd/places.h"
#include "kernels/winograd_int16/plan.h"

namespace softneuro::SN_ISA {
namespace winograd_int16 {

using winograd::find_inputs;
using winograd::find_tile;
using winograd::Tile;

// B' d.
SN_INLINE void encode_axis(const Halves (&d)[4], Halves (&v)[4]) {
  v[0] = d[0] - d[2];
  v[1] = d[1] + d[2];
  v[2] = d[2] - d[1];
  v[3] = d[1] - d[3];
}
SN_INLINE void encode_axis(const Halves (&d)[6], Halves (&v)[6]) {
  const Halves even = d[4] - (d[2] << 2), odd = d[3] - (d[1] << 2);
  const Halves far_even = d[4] - d[2], far_odd = (d[3] - d[1]) << 1;
  v[0] = ((d[0] - d[2]) << 2) + far_even;
  v[1] = even + odd;
  v[2] = even - odd;
  v[3] = far_even + far_odd;
  v[4] = far_even - far_odd;
  v[5] = ((d[1] - d[3]) << 2) + d[5] - d[3];
}

typedef uint8_t ChannelBytes __attribute__((vector_size(channels)));
SN_INLINE Halves read_channels(const uint8_t* p, int count) {
  ChannelBytes x{};
  if (count == channels) {
    __builtin_memcpy(&x, p, sizeof x);
  } else {
    __builtin_memcpy(&x, p, static_cast<size_t>(count));
  }
  return __builtin_convertvector(x, Halves);
}

struct EncodeRows {
  const uint8_t* src;  // row 0, column 0 of the tile, which may lie outside the image
  ptrdiff_t src_row, src_pixel;
  int count;  // channels that there are in the block
  int zero;
  int row_begin, row_end, column_begin, column_end;  // of the tile that are inside
  int rows;
  float* dst;  // [row][position][channel]
};
template <int positions>
[[gnu::flatten]] void encode_rows(const EncodeRows& a) {
  float* dst = a.dst;
  const Halves zero_point = Halves{} + static_cast<int16_t>(a.zero);
  for (int y = 0; y < a.rows; ++y, dst += positions * lanes) {
    Halves d[positions], v[positions];
    if (y < a.row_begin || y >= a.row_end) {
      unroll<positions>([&](auto x) { store_halves(dst + x * lanes, Halves{}); });
      continue;
    }
    const uint8_t* const src = a.src + y * a.src_row;
    if (a.column_begin == 0 && a.column_end == positions && a.count == channels) {
      unroll<positions>([&](auto x) { d[x] = read_channels(src + x * a.src_pixel, channels) - zero_point; });
    } else {
      unroll<positions>([&](int x) {
        d[x] = Halves{};
        if (x >= a.column_begin && x < a.column_end) d[x] = read_channels(src + x * a.src_pixel, a.count) - zero_point;
      });
    }
    encode_axis(d, v);
    unroll<positions>([&](auto x) { store_halves(dst + x * lanes, v[x]); });
  }
}

struct EncodeColumns {
  const float* src;  // of encode_rows
  int columns;
  float* dst;  // position 0
  size_t dst_position;
};
template <int positions>
[[gnu::flatten]] void encode_columns(const EncodeColumns& a) {
  for (int x = 0; x < a.columns; ++x) {
    Halves d[positions], v[positions];
    unroll<positions>([&](auto y) { d[y] = load_halves(a.src + (y * a.columns + x) * lanes); });
    encode_axis(d, v);
    float* const dst = a.dst + x * a.dst_position;
    unroll<positions>([&](auto y) { store_halves(dst + y * a.columns * a.dst_position, v[y]); });
  }
}

inline void encode_block(const WinogradInt16Args& args, const Plan& plan, int group, int first, int count) {
  const WinogradShape& s = args.shape;
  const auto rows = s.tile_w == 2 ? encode_rows<4> : encode_rows<6>;
  const auto columns = s.tile_h == 2 ? encode_columns<4> : encode_columns<6>;
  EncodeRows a;
  a.src_pixel = static_cast<ptrdiff_t>(s.groups) * s.in_channels;
  a.src_row = a.src_pixel * s.w;
  a.zero = args.src_zero;
  a.rows = s.positions_h();
  a.dst = plan.tile;
  EncodeColumns b{plan.tile, s.positions_w(), plan.encoded, plan.encoded_position};
  for (int cb = 0; cb < plan.in_blocks; ++cb) {
    const int channel = cb * channels;
    a.count = s.in_channels - channel < channels ? s.in_channels - channel : channels;
    for (int t = 0; t < count; ++t, b.dst += lanes) {
      const Tile tile = find_tile(s, first + t);
      const ptrdiff_t pixel = find_inputs(s, tile, a);
      a.src = static_cast<const uint8_t*>(args.src) + tile.image * args.src_image + pixel * a.src_pixel +
              group * s.in_channels + channel;
      rows(a);
      columns(b);
    }
  }
}

}  // namespace winograd_int16
}  // namespace softneuro::SN_ISA
