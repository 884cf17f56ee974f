// Copies of short runs of float32, padded with zeros: what moves channels between layouts that keep them together.
#pragma once

#include <cstdint>

namespace softneuro {

enum class Isa : unsigned char;

// dst[run * dst_stride + i] = i < count ? src[run * src_stride + i] : 0 for run < runs, i < width. Strides in elements.
struct Repack {
  const float* src;
  int64_t src_stride;
  float* dst;
  int64_t dst_stride;
  int64_t runs;
  int count, width;  // 0 <= count <= width
};

using RepackKernel = void (*)(const Repack&);

// Null if this build has none for the level.
RepackKernel repack_kernel(Isa isa);

}  // namespace softneuro
