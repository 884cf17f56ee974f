// Where tiles are in images. See winograd.h.
#pragma once

#include "kernels/winograd/winograd.h"
#include "simd/simd.h"

namespace softneuro::SN_ISA {
namespace winograd {

struct Tile {
  int image, y, x;  // of the first output
};
SN_INLINE Tile find_tile(const WinogradShape& s, int index) {
  const int in_row = index % s.tiles_w(), row = index / s.tiles_w();
  return {row / s.tiles_h(), row % s.tiles_h() * s.tile_h, in_row * s.tile_w};
}
// Sets which of a tile's inputs are inside the image; the pixel of the first one, as if it were.
template <class Encode>
SN_INLINE ptrdiff_t find_inputs(const WinogradShape& s, const Tile& tile, Encode& a) {
  const int y = tile.y * s.stride_h - s.pad_top, x = tile.x * s.stride_w - s.pad_left;
  const int rows = s.positions_h(), columns = s.positions_w();
  a.row_begin = y < 0 ? -y : 0;
  a.row_end = s.h - y < rows ? s.h - y : rows;
  a.column_begin = x < 0 ? -x : 0;
  a.column_end = s.w - x < columns ? s.w - x : columns;
  return static_cast<ptrdiff_t>(y) * s.w + x;
}

}  // namespace winograd
}  // namespace softneuro::SN_ISA
