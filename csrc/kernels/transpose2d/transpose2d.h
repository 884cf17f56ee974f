// Transpose of a matrix of float32.
#pragma once

#include <cstdint>

namespace softneuro {

enum class Isa : unsigned char;

// dst[col * dst_stride + row] = src[row * src_stride + col] for row < rows, col < cols, and zero for
// rows <= row < width. Strides in elements.
struct Transpose2d {
  const float* src;
  int64_t src_stride;
  float* dst;
  int64_t dst_stride;
  int64_t rows, cols;
  int64_t width;  // at least rows
};

using Transpose2dKernel = void (*)(const Transpose2d&);

// Null if this build has none for the level.
Transpose2dKernel transpose2d_kernel(Isa isa);

}  // namespace softneuro
