// pool_bytes over Vb and Vf. Contract: pool_bytes.h.
#pragma once

#include "kernels/pool_bytes/pool_bytes.h"
#include "simd/bytes.h"
#include "simd/elements.h"

namespace softneuro::SN_ISA {
namespace pool_bytes {

// Calls body(first channel of a tap) for each tap of a window.
template <class Body>
SN_INLINE void for_taps(const PoolBytesRow& p, const PoolSpan& span, const Body& body) {
  for (int64_t row = 0; row < p.rows; ++row) {
    const uint8_t* at = p.src + row * p.row_stride + span.begin * p.pixel;
    for (int64_t tap = 0; tap < span.count; ++tap, at += p.dilation * p.pixel) body(at);
  }
}

inline void maximum(const PoolBytesRow& p, const PoolSpan& span, uint8_t* dst) {
  int64_t c = 0;
  const auto most = [&](const auto& load) {
    Vb found{};
    for_taps(p, span, [&](const uint8_t* src) {
      const Vb x = load(src + c);
      found = found > x ? found : x;
    });
    return found;
  };
  for (; c + vector_bytes <= p.channels; c += vector_bytes)
    store_row(dst + c, most([](auto* at) { return load_row(at); }));
  const int rest = static_cast<int>(p.channels - c);
  if (rest > 0) store_row_n(dst + c, most([rest](auto* at) { return load_row_n(at, rest); }), rest);
}

inline void average(const PoolBytesRow& p, const PoolSpan& span, float scale, uint8_t* SN_RESTRICT dst) {
  int32_t* SN_RESTRICT sums = p.sums;
  const auto start = static_cast<int32_t>(-p.zero * p.rows * span.count);
  for (int64_t c = 0; c < p.channels; ++c) sums[c] = start;
  for_taps(p, span, [&](const uint8_t* SN_RESTRICT src) {
    for (int64_t c = 0; c < p.channels; ++c) sums[c] += src[c];
  });
  const Vf factor = set(scale), least = set(static_cast<float>(p.least)), most = set(static_cast<float>(p.most));
  const Vi zero = Vi{} + p.dst_zero;
  const auto steps = [&](Vi sum) { return nearest(clamp(to_float(sum) * factor, least, most)) + zero; };
  int64_t c = 0;
  for (; c + lanes <= p.channels; c += lanes) store(dst + c, steps(load(sums + c)));
  const int rest = static_cast<int>(p.channels - c);
  if (rest > 0) store_n(dst + c, steps(load_n(sums + c, rest)), rest);
}

inline void run(const PoolBytesRow& p) {
  for (int64_t x = 0; x < p.outputs; ++x) {
    uint8_t* dst = p.dst + x * p.dst_pixel;
    p.is_max ? maximum(p, p.spans[x], dst) : average(p, p.spans[x], p.scale[x] * p.row_scale, dst);
  }
}

}  // namespace pool_bytes
}  // namespace softneuro::SN_ISA

namespace softneuro {

SN_KERNEL_TABLE(PoolBytesKernel, pool_bytes) = SN_ISA::pool_bytes::run;

}  // namespace softneuro
