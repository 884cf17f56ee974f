#include "kernels/transpose2d/bytes.h"

#include <cstring>

namespace softneuro {
namespace {

// Swaps the blocks of `step` rows by `step` bytes beside the diagonal: rows k and k + step of each pair.
template <int step>
void swap_blocks(uint64_t (&rows)[8], uint64_t left) {
  for (int k = 0; k < 8; ++k) {
    if ((k & step) != 0) continue;
    const uint64_t moved = (rows[k] >> (8 * step) ^ rows[k + step]) & left;
    rows[k + step] ^= moved;
    rows[k] ^= moved << (8 * step);
  }
}

void transpose_square(const uint8_t* src, int64_t src_stride, uint8_t* dst, int64_t dst_stride) {
  uint64_t rows[8];
  for (int k = 0; k < 8; ++k) std::memcpy(&rows[k], src + k * src_stride, 8);
  swap_blocks<1>(rows, 0x00ff00ff00ff00ffU);
  swap_blocks<2>(rows, 0x0000ffff0000ffffU);
  swap_blocks<4>(rows, 0x00000000ffffffffU);
  for (int k = 0; k < 8; ++k) std::memcpy(dst + k * dst_stride, &rows[k], 8);
}

void transpose_plainly(const uint8_t* src, int64_t src_stride, uint8_t* dst, int64_t dst_stride, int64_t rows,
                       int64_t cols) {
  for (int64_t col = 0; col < cols; ++col) {
    for (int64_t row = 0; row < rows; ++row) dst[col * dst_stride + row] = src[row * src_stride + col];
  }
}

}  // namespace

// Transposes squares of 8 by 8 bytes, each in eight general registers.
void transpose_bytes2d(const uint8_t* src, int64_t src_stride, uint8_t* dst, int64_t dst_stride, int64_t rows,
                       int64_t cols) {
  const int64_t whole_rows = rows / 8 * 8, whole_cols = cols / 8 * 8;
  for (int64_t row = 0; row < whole_rows; row += 8) {
    for (int64_t col = 0; col < whole_cols; col += 8) {
      transpose_square(src + row * src_stride + col, src_stride, dst + col * dst_stride + row, dst_stride);
    }
  }
  transpose_plainly(src + whole_cols, src_stride, dst + whole_cols * dst_stride, dst_stride, whole_rows,
                    cols - whole_cols);
  transpose_plainly(src + whole_rows * src_stride, src_stride, dst + whole_rows, dst_stride, rows - whole_rows, cols);
}

}  // namespace softneuro
