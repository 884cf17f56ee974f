// Copies of strided boxes of elements of any size. No arithmetic and no vector code of its own: one build serves every
// level.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace softneuro {

// dst[i, j, k, 0 .. length) = src[i, j, k, 0 .. length) for i, j, k below dims; strides in elements of `bytes` bytes.
struct CopyJob {
  const std::byte* src = nullptr;
  std::byte* dst = nullptr;
  int64_t bytes = sizeof(float);
  std::array<int64_t, 3> dims{1, 1, 1}, src_stride{}, dst_stride{};
  int64_t length = 0;

  int64_t elements() const { return dims[0] * dims[1] * dims[2] * length; }
};

// The elements [begin, end) of the job, counted in row-major order, so that any number of tasks can share it evenly.
void copy_part(const CopyJob& job, int64_t begin, int64_t end);

// `runs` runs of `length` bytes; strides in bytes.
void copy_runs(const std::byte* src, int64_t src_stride, std::byte* dst, int64_t dst_stride, int64_t runs,
               int64_t length);

}  // namespace softneuro
