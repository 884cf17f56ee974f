// One row of a pooling's outputs over windows of any position and size, of bytes whose channels are side by side.
#pragma once

#include <cstdint>

#include "kernels/pool/pool.h"

namespace softneuro {

// As PoolRow (kernels/pool/pool.h): the maximum of bytes, or
//   clamp(nearest((sum - count * zero) * scale[x] * row_scale), least, most) + dst_zero
// where count is the number of bytes in the sum, which must be below 2^23.
struct PoolBytesRow {
  const uint8_t* src;
  int64_t row_stride, rows;
  int64_t pixel, dilation;
  const PoolSpan* spans;
  int64_t outputs;
  uint8_t* dst;
  int64_t dst_pixel;
  int64_t channels;
  bool is_max;
  int32_t zero;
  const float* scale;
  float row_scale;
  int32_t least, most, dst_zero;
  int32_t* sums;  // scratch: `channels` numbers
};

using PoolBytesKernel = void (*)(const PoolBytesRow&);

// Null if this build has none for the level.
PoolBytesKernel pool_bytes_kernel(Isa isa);

}  // namespace softneuro
