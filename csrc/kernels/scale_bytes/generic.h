// scale_bytes over Vf. Contract: scale_bytes.h.
#pragma once

#include "kernels/scale_bytes/scale_bytes.h"
#include "kernels/unroll.h"
#include "simd/pixels.h"

namespace softneuro::SN_ISA {
namespace scale_bytes {

inline void plane(const uint8_t* SN_RESTRICT src, float* SN_RESTRICT dst, int64_t count, float scale, float shift) {
  const Vf factor = set(scale), start = set(shift);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) store(dst + i, fma(load(src + i), factor, start));
  const int rest = static_cast<int>(count - i);
  if (rest > 0) store_n(dst + i, fma(load_n(src + i, rest), factor, start), rest);
}

template <int channels>
inline void together(const ScaleBytesArgs& a) {
  Vf scale[channels], shift[channels];
  unroll<channels>([&](auto c) { scale[c] = set(a.scale[c]), shift[c] = set(a.shift[c]); });
  const auto value = [&](Vi pixels, auto c) { return fma(to_float(pixels >> (8 * c) & 255), scale[c], shift[c]); };
  int64_t i = 0;
  for (; i + lanes <= a.pixels; i += lanes) {
    const Vi pixels = load_pixels<channels>(a.src + i * channels);
    unroll<channels>([&](auto c) { store(a.dst + c * a.pixels + i, value(pixels, c)); });
  }
  const int rest = static_cast<int>(a.pixels - i);
  if (rest == 0) return;
  uint8_t copy[lanes * channels] = {};
  for (int k = 0; k < rest * channels; ++k) copy[k] = a.src[i * channels + k];
  const Vi pixels = load_pixels<channels>(copy);
  unroll<channels>([&](auto c) { store_n(a.dst + c * a.pixels + i, value(pixels, c), rest); });
}

inline void run(const ScaleBytesArgs& a) {
  if (a.pixel == 1) {
    for (int c = 0; c < a.channels; ++c) {
      plane(a.src + c * a.channel, a.dst + c * a.pixels, a.pixels, a.scale[c], a.shift[c]);
    }
  } else if (a.channels == 2) {
    together<2>(a);
  } else if (a.channels == 3) {
    together<3>(a);
  } else {
    together<4>(a);
  }
}

}  // namespace scale_bytes
}  // namespace softneuro::SN_ISA

namespace softneuro {

SN_KERNEL_TABLE(ScaleBytesKernel, scale_bytes) = SN_ISA::scale_bytes::run;

}  // namespace softneuro
