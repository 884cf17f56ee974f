#include "kernels/repack/repack.h"
#include "simd/simd.h"

namespace softneuro::SN_ISA {

SN_INLINE int clamp_lanes(int count) { return count < 0 ? 0 : count > lanes ? lanes : count; }

// `width` is known to the compiler.
template <int width>
SN_INLINE void repack_whole(const Repack& p) {
  for (int64_t run = 0; run < p.runs; ++run) {
    const float* src = p.src + run * p.src_stride;
    float* dst = p.dst + run * p.dst_stride;
    if constexpr (width < lanes) {
      store_n(dst, load_n(src, width), width);
    } else {
#pragma GCC unroll 4
      for (int i = 0; i < width; i += lanes) store(dst + i, load(src + i));
    }
  }
}

SN_INLINE void repack_partial(const Repack& p) {
  for (int64_t run = 0; run < p.runs; ++run) {
    const float* src = p.src + run * p.src_stride;
    float* dst = p.dst + run * p.dst_stride;
    for (int i = 0; i < p.width; i += lanes) {
      const int count = clamp_lanes(p.count - i), width = clamp_lanes(p.width - i);
      store_n(dst + i, load_n(src + (count > 0 ? i : 0), count), width);
    }
  }
}

inline void repack(const Repack& p) {
  if (p.count == 16 && p.width == 16) return repack_whole<16>(p);
  if (p.count == 8 && p.width == 8) return repack_whole<8>(p);
  if (p.count == 4 && p.width == 4) return repack_whole<4>(p);
  repack_partial(p);
}

}  // namespace softneuro::SN_ISA

namespace softneuro {

SN_KERNEL_TABLE(RepackKernel, repack) = SN_ISA::repack;

}  // namespace softneuro
