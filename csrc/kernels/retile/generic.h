// retile over Vf: as many vectors as there are lanes are read, transposed and written.
#pragma once

#include "kernels/retile/retile.h"
#include "simd/simd.h"

namespace softneuro::SN_ISA {
namespace retile {

// Where the lanes' tiles are in a row of tiles, as elements of a plane, and how many of their pixels are in the image.
struct Row {
  ptrdiff_t at[lanes];
  int pixels[lanes];

  SN_INLINE Row(const RetileArgs& p, int row) {
    for (int i = 0; i < lanes; ++i) {
      const int y = i / p.across * p.tile_h + row, x = i % p.across * p.tile_w;
      at[i] = static_cast<ptrdiff_t>(y) * p.w + x;
      const int left = y < p.h ? p.w - x : 0;
      pixels[i] = left < 0 ? 0 : left < p.tile_w ? left : p.tile_w;
    }
  }
  // How many pixels from column x on a vector takes.
  SN_INLINE int count(int lane, int x) const {
    const int n = pixels[lane] - x;
    return n < 0 ? 0 : n < lanes ? n : lanes;
  }
};

inline void plane_to_tiles(const RetileArgs& p) {
  for (int y = p.begin; y < p.end; ++y) {
    const Row row(p, y);
    float* tiles = p.tiles + static_cast<ptrdiff_t>(y) * p.tile_w * lanes;
    for (int x = 0; x < p.tile_w; x += lanes) {
      Vf v[lanes];
#pragma GCC unroll 16
      for (int i = 0; i < lanes; ++i) {
        const int n = row.count(i, x);
        v[i] = n == lanes ? load(p.image + row.at[i] + x) : n > 0 ? load_n(p.image + row.at[i] + x, n) : zero();
      }
      transpose(v);
      const int columns = p.tile_w - x < lanes ? p.tile_w - x : lanes;
#pragma GCC unroll 16
      for (int j = 0; j < lanes; ++j) {
        if (j < columns) store(tiles + (x + j) * lanes, v[j]);
      }
    }
  }
}

inline void tiles_to_plane(const RetileArgs& p) {
  for (int y = p.begin; y < p.end; ++y) {
    const Row row(p, y);
    const float* tiles = p.tiles + static_cast<ptrdiff_t>(y) * p.tile_w * lanes;
    for (int x = 0; x < p.tile_w; x += lanes) {
      const int columns = p.tile_w - x < lanes ? p.tile_w - x : lanes;
      Vf v[lanes];
#pragma GCC unroll 16
      for (int j = 0; j < lanes; ++j) v[j] = j < columns ? load(tiles + (x + j) * lanes) : zero();
      transpose(v);
#pragma GCC unroll 16
      for (int i = 0; i < lanes; ++i) {
        const int n = row.count(i, x);
        if (n == lanes) {
          store(p.image + row.at[i] + x, v[i]);
        } else if (n > 0) {
          store_n(p.image + row.at[i] + x, v[i], n);
        }
      }
    }
  }
}

inline void block_to_tiles(const RetileArgs& p) {
  for (int y = p.begin; y < p.end; ++y) {
    const Row row(p, y);
    float* tiles = p.tiles + static_cast<ptrdiff_t>(y) * p.tile_w * lanes;
    for (int x = 0; x < p.tile_w; ++x, tiles += lanes) {
      Vf v[lanes];
#pragma GCC unroll 16
      for (int i = 0; i < lanes; ++i) v[i] = x < row.pixels[i] ? load(p.image + (row.at[i] + x) * lanes) : zero();
      transpose(v);
#pragma GCC unroll 16
      for (int c = 0; c < lanes; ++c) {
        if (c < p.channels) store(tiles + c * p.stride, v[c]);
      }
    }
  }
}

inline void tiles_to_block(const RetileArgs& p) {
  for (int y = p.begin; y < p.end; ++y) {
    const Row row(p, y);
    const float* tiles = p.tiles + static_cast<ptrdiff_t>(y) * p.tile_w * lanes;
    for (int x = 0; x < p.tile_w; ++x, tiles += lanes) {
      Vf v[lanes];
#pragma GCC unroll 16
      for (int c = 0; c < lanes; ++c) v[c] = c < p.channels ? load(tiles + c * p.stride) : zero();
      transpose(v);
#pragma GCC unroll 16
      for (int i = 0; i < lanes; ++i) {
        if (x < row.pixels[i]) store(p.image + (row.at[i] + x) * lanes, v[i]);
      }
    }
  }
}

}  // namespace retile
}  // namespace softneuro::SN_ISA

namespace softneuro {

SN_KERNEL_TABLE(RetileKernels, retile) = {
    .lanes = SN_ISA::lanes,
    .plane_to_tiles = SN_ISA::retile::plane_to_tiles,
    .tiles_to_plane = SN_ISA::retile::tiles_to_plane,
    .block_to_tiles = SN_ISA::retile::block_to_tiles,
    .tiles_to_block = SN_ISA::retile::tiles_to_block,
};

}  // namespace softneuro
