#include "kernels/copy/copy.h"

#include <algorithm>
#include <cstring>

namespace softneuro {
namespace {

void copy_bytes(std::byte* dst, const std::byte* src, int64_t count) {
  std::memcpy(dst, src, static_cast<size_t>(count));
}

// A length known to the compiler makes the copy a few moves instead of a call.
template <int64_t length>
void copy_short_runs(const std::byte* src, int64_t src_stride, std::byte* dst, int64_t dst_stride, int64_t runs) {
  for (int64_t run = 0; run < runs; ++run) copy_bytes(dst + run * dst_stride, src + run * src_stride, length);
}

}  // namespace

void copy_runs(const std::byte* src, int64_t src_stride, std::byte* dst, int64_t dst_stride, int64_t runs,
               int64_t length) {
  if (src_stride == length && dst_stride == length) return copy_bytes(dst, src, runs * length);
  switch (length) {
    case 1:
      return copy_short_runs<1>(src, src_stride, dst, dst_stride, runs);
    case 4:
      return copy_short_runs<4>(src, src_stride, dst, dst_stride, runs);
    case 16:
      return copy_short_runs<16>(src, src_stride, dst, dst_stride, runs);
    case 32:
      return copy_short_runs<32>(src, src_stride, dst, dst_stride, runs);
    case 64:
      return copy_short_runs<64>(src, src_stride, dst, dst_stride, runs);
    default:
      for (int64_t run = 0; run < runs; ++run) copy_bytes(dst + run * dst_stride, src + run * src_stride, length);
  }
}

void copy_part(const CopyJob& job, int64_t begin, int64_t end) {
  const int64_t bytes = job.bytes;
  while (begin < end) {
    const int64_t row = begin / job.length, offset = begin % job.length;
    const int64_t i = row / job.dims[2] / job.dims[1], j = row / job.dims[2] % job.dims[1], k = row % job.dims[2];
    const std::byte* src = job.src + (i * job.src_stride[0] + j * job.src_stride[1] + k * job.src_stride[2]) * bytes;
    std::byte* dst = job.dst + (i * job.dst_stride[0] + j * job.dst_stride[1] + k * job.dst_stride[2]) * bytes;
    if (offset == 0 && end - begin >= job.length) {
      const int64_t runs = std::min((end - begin) / job.length, job.dims[2] - k);
      copy_runs(src, job.src_stride[2] * bytes, dst, job.dst_stride[2] * bytes, runs, job.length * bytes);
      begin += runs * job.length;
    } else {
      const int64_t count = std::min(job.length - offset, end - begin);
      copy_bytes(dst + offset * bytes, src + offset * bytes, count * bytes);
      begin += count;
    }
  }
}

}  // namespace softneuro
