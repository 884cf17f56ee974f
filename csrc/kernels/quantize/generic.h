// quantize over Vf. Contract: quantize.h.
#pragma once

#include "kernels/quantize/quantize.h"
#include "kernels/store/visit.h"

namespace softneuro::SN_ISA {
namespace quantize {

template <class Body>
SN_INLINE void for_vectors(int64_t count, const Body& body) {
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) body(i, lanes);
  if (i < count) body(i, static_cast<int>(count - i));
}

template <class Steps>
SN_INLINE void to_bytes(const QuantizeSteps& q, const float* src, uint8_t* dst, int64_t count, const Steps& steps) {
  const Vf least = set(static_cast<float>(q.least - q.zero)), most = set(static_cast<float>(q.most - q.zero));
  const Vi zero = Vi{} + q.zero;
  for_vectors(count, [&](int64_t i, int n) {
    const Vf x = steps(n == lanes ? load(src + i) : load_n(src + i, n));
    const Vi byte = nearest(select(is_nan(x), least, clamp(x, least, most))) + zero;
    n == lanes ? store(dst + i, byte) : store_n(dst + i, byte, n);
  });
}

inline void to_bytes(const QuantizeSteps& q, const float* src, uint8_t* dst, int64_t count) {
  if (q.reciprocal) {
    const Vf inverse = set(1 / q.scale);
    return to_bytes(q, src, dst, count, [inverse](Vf x) { return x * inverse; });
  }
  const Vf scale = set(q.scale);
#if SN_LEVEL != SN_LEVEL_scalar
  // The remainder makes the product with the reciprocal the rounded quotient itself, as long as no exponent is at an
  // end of its range (Markstein 1990).
  if (q.scale > 0x1p-60f && q.scale < 0x1p60f) {
    const Vf inverse = set(1 / q.scale), bound = set(1024 * q.scale);  // beyond all steps
    return to_bytes(q, src, dst, count, [=](Vf x) {
      x = clamp(x, -bound, bound);
      const Vf near = x * inverse;
      return fma(fnma(near, scale, x), inverse, near);
    });
  }
#endif
  to_bytes(q, src, dst, count, [scale](Vf x) { return x / scale; });
}

inline void to_floats(const QuantizeSteps& q, const uint8_t* src, float* dst, int64_t count) {
  read_values({q.least >= 0 ? DType::uint8 : DType::int8, q.scale, q.zero}, src, 0, count, dst);
}

}  // namespace quantize
}  // namespace softneuro::SN_ISA

namespace softneuro {

SN_KERNEL_TABLE(QuantizeKernels, quantize) = {
    .to_bytes = SN_ISA::quantize::to_bytes,
    .to_floats = SN_ISA::quantize::to_floats,
};

}  // namespace softneuro
