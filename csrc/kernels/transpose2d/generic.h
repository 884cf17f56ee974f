#include "kernels/transpose2d/transpose2d.h"
#include "simd/simd.h"

namespace softneuro::SN_ISA {

// Rows at [row, row + lanes) by columns at [col, col + lanes), fewer at the edges; rows past the last are zero.
template <bool whole>
SN_INLINE void transpose_tile(const Transpose2d& p, int64_t row, int64_t col) {
  const int64_t rows = p.rows - row, cols = p.cols - col, width = p.width - row;
  const int col_count = whole || cols > lanes ? lanes : static_cast<int>(cols);
  const float* src = p.src + row * p.src_stride + col;
  Vf tile[lanes];
#pragma GCC unroll 16
  for (int i = 0; i < lanes; ++i) {
    if constexpr (whole) {
      tile[i] = load(src + i * p.src_stride);
    } else {
      tile[i] = i < rows ? load_n(src + i * p.src_stride, col_count) : zero();
    }
  }
  transpose(tile);
  const int width_count = whole || width > lanes ? lanes : static_cast<int>(width);
  float* dst = p.dst + col * p.dst_stride + row;
#pragma GCC unroll 16
  for (int j = 0; j < lanes; ++j) {
    if constexpr (whole) {
      store(dst + j * p.dst_stride, tile[j]);
    } else {
      if (j < col_count) store_n(dst + j * p.dst_stride, tile[j], width_count);
    }
  }
}

inline void transpose2d(const Transpose2d& p) {
  // Tiles go along the destination's rows within bands of this many floats (eight cache lines): long runs for the write
  // combining of the caches, while the source lines of a band that tiles narrower than a line share stay in L1.
  constexpr int64_t band = 128;
  for (int64_t begin = 0; begin < p.width; begin += band) {
    const int64_t end = begin + band < p.width ? begin + band : p.width;
    for (int64_t col = 0; col < p.cols; col += lanes) {
      for (int64_t row = begin; row < end; row += lanes) {
        if (row + lanes <= p.rows && col + lanes <= p.cols) {
          transpose_tile<true>(p, row, col);
        } else {
          transpose_tile<false>(p, row, col);
        }
      }
    }
  }
}

}  // namespace softneuro::SN_ISA

namespace softneuro {

SN_KERNEL_TABLE(Transpose2dKernel, transpose2d) = SN_ISA::transpose2d;

}  // namespace softneuro
