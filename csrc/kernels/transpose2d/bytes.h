// Transpose of a matrix of bytes.
#pragma once

#include <cstdint>

namespace softneuro {

// dst[col * dst_stride + row] = src[row * src_stride + col] for row < rows, col < cols; strides in bytes.
void transpose_bytes2d(const uint8_t* src, int64_t src_stride, uint8_t* dst, int64_t dst_stride, int64_t rows,
                       int64_t cols);

}  // namespace softneuro
