// One row of a pooling's outputs over windows of any position and size.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/epilogue.h"

namespace softneuro {

enum class Isa : unsigned char;

// The taps of a window that lie inside the image, along one axis: `count` of them from coordinate `begin` on.
struct PoolSpan {
  int64_t begin, count;
};

// How elements of src and dst are stored; their types are the same.
struct PoolFormats {
  ElementFormat from = {}, to = {};
};

// dst[x, c] = reduce over row < rows, tap < spans[x].count of
//             src[row * row_stride + (spans[x].begin + tap * dilation) * pixel + c]
// for x < outputs, c < channels, where reduce is the maximum (-inf of nothing; NaN if any is NaN), or the sum times
// scale[x] * row_scale. `lanes` adds bytes as integers, so that a window of any size is exact up to its scale, and
// takes a maximum of bytes as it is: there `from` and `to` are the same.
struct PoolRow {
  const void* src;  // first row of taps, column 0
  int64_t row_stride, rows;
  int64_t pixel;  // elements from one column to the next
  int64_t dilation;
  const PoolSpan* spans;
  int64_t outputs;
  void* dst;
  int64_t dst_pixel;
  int64_t channels;
  bool is_max;
  const float* scale;  // of averages
  float row_scale;
  int64_t step;  // columns between windows of outputs in [inner_begin, inner_end), all with the same count
  int64_t inner_begin, inner_end;
  const PoolFormats* formats = nullptr;  // null: float32
  // Only `line` uses these.
  int64_t width = 0;         // columns of src
  float* scratch = nullptr;  // whole_lines(width) floats, and as many as there are outputs if src is no floats
};

using PoolKernel = void (*)(const PoolRow&);

// Maxima of vectors: dst[y][x] = max over taps of src[offsets[tap] + y * src_row + x * src_column], NaN if any is NaN.
struct PoolVectors {
  const float* src;
  ptrdiff_t src_row, src_column;  // floats from a row or column of positions to the next
  const int32_t* offsets;         // [taps]
  int taps;
  float* dst;  // rows of vectors, one after the other
  int rows, vectors;
};

// `lanes`: vectors over channels, which are side by side. `line`: one channel, pixel = dst_pixel = 1, vectors over
// columns.
struct PoolKernels {
  PoolKernel lanes = nullptr, line = nullptr;
  void (*max_vectors)(const PoolVectors&) = nullptr;
};

// Nulls if this build has none for the level.
PoolKernels pool_kernels(Isa isa);

}  // namespace softneuro
