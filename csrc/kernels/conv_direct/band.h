// Copies of the rows that a band of output rows of a convolution needs, for kernels on blocked blobs.
#pragma once

#include "kernels/conv_direct/conv_direct.h"
#include "kernels/integers.h"
#include "simd/simd.h"

namespace softneuro::SN_ISA {
namespace conv_direct {

// The rows of src that a band of output rows needs, copied with the padding in place and columns sorted by
// x % stride_w, so that neighbours in a tile are neighbours in memory: [in block][row][phase][column][lane].
struct Buffer {
  int rows, columns;
  size_t row, block;  // strides in floats

  // padded: rows of padding, too.
  Buffer(const ConvDirectShape& s, int out_rows, bool padded = false) {
    rows = (out_rows - 1) * s.stride_h + (s.kernel_h - 1) * s.dilation_h + 1;
    if (rows > s.h && !padded) rows = s.h;
    columns = s.out_w + (s.kernel_w - 1) * s.dilation_w / s.stride_w;
    row = static_cast<size_t>(columns) * s.stride_w * lanes;
    // An odd number of lines apart, so that blocks do not compete for the same cache sets.
    block = (static_cast<size_t>(rows) * row / lanes | 1) * lanes;
  }

  // Floats to tap s of a kernel's row.
  int tap(const ConvDirectShape& shape, int s) const {
    const int x = s * shape.dilation_w;
    return (x % shape.stride_w * columns + x / shape.stride_w) * lanes;
  }
};

inline bool tap_reaches(int distance, int kernel, int dilation, int stride) {
  for (int k = 0; k < kernel; ++k) {
    if ((distance - k * dilation) % stride == 0) return true;
  }
  return false;
}

inline void copy_row(const ConvDirectShape& s, const Buffer& buffer, const float* src, float* dst) {
  for (int phase = 0; phase < s.stride_w; ++phase, dst += buffer.columns * lanes) {
    if (!tap_reaches(phase, s.kernel_w, s.dilation_w, s.stride_w)) continue;
    const int first = phase - s.pad_left;  // column of the image that comes first
    const auto reaching = [&](int x) {     // how many come before x
      const int count = x <= first ? 0 : ceil_div(x - first, s.stride_w);
      return count < buffer.columns ? count : buffer.columns;
    };
    const int begin = reaching(0), end = reaching(s.w);
    for (int q = 0; q < begin; ++q) store(dst + q * lanes, zero());
    for (int q = begin; q < end; ++q) store(dst + q * lanes, load(src + (first + q * s.stride_w) * lanes));
    for (int q = end; q < buffer.columns; ++q) store(dst + q * lanes, zero());
  }
}

}  // namespace conv_direct
}  // namespace softneuro::SN_ISA
