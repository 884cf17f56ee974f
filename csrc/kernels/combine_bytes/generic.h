// combine_bytes over Vf. Contract: combine_bytes.h.
#pragma once

#include "kernels/combine_bytes/combine_bytes.h"
#include "simd/elements.h"

namespace softneuro::SN_ISA {
namespace combine_bytes {

// dst[i] = the steps that value(i, n) gives, n at a time.
template <class Value>
SN_INLINE void put_all(const CombineBytes& c, uint8_t* dst, int64_t count, const Value& value) {
  const Vf least = set(c.least), most = set(c.most);
  const Vi zero = Vi{} + c.zero;
  const auto steps = [&](Vf x) { return nearest(clamp(x, least, most)) + zero; };
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) store(dst + i, steps(value(i, lanes)));
  if (i < count) {
    const int rest = static_cast<int>(count - i);
    store_n(dst + i, steps(value(i, rest)), rest);
  }
}

SN_INLINE Vi centred(const uint8_t* p, int n, Vi zero) { return (n == lanes ? widen(p) : widen_n(p, n)) - zero; }

// Calls body with what reads the second operand.
template <class Body>
SN_INLINE void with_second(const CombineBytes& c, const uint8_t* b, bool one, const Body& body) {
  if (one) {
    const Vi same = Vi{} + (int{*b} - c.b_zero);
    return body([same](int64_t, int) { return same; });
  }
  const Vi zero = Vi{} + c.b_zero;
  body([b, zero](int64_t i, int n) { return centred(b + i, n, zero); });
}

inline void add(const CombineBytes& c, const uint8_t* a, const uint8_t* b, bool one, uint8_t* dst, int64_t count) {
  const Vi zero = Vi{} + c.a_zero;
  const Vf a_scale = set(c.a_scale), b_scale = set(c.b_scale);
  with_second(c, b, one, [&](const auto& second) {
    put_all(c, dst, count, [&](int64_t i, int n) {
      return fused(to_float(centred(a + i, n, zero)), a_scale, to_float(second(i, n)) * b_scale);
    });
  });
}

inline void multiply(const CombineBytes& c, const uint8_t* a, const uint8_t* b, bool one, uint8_t* dst, int64_t count) {
  const Vi zero = Vi{} + c.a_zero;
  const Vf scale = set(c.a_scale);
  with_second(c, b, one, [&](const auto& second) {
    put_all(c, dst, count, [&](int64_t i, int n) { return to_float(centred(a + i, n, zero) * second(i, n)) * scale; });
  });
}

inline void rescale(const CombineBytes& c, const uint8_t* a, uint8_t* dst, int64_t count) {
  const Vi zero = Vi{} + c.a_zero;
  const Vf scale = set(c.a_scale);
  put_all(c, dst, count, [&](int64_t i, int n) { return to_float(centred(a + i, n, zero)) * scale; });
}

}  // namespace combine_bytes
}  // namespace softneuro::SN_ISA

namespace softneuro {

SN_KERNEL_TABLE(CombineBytesKernels, combine_bytes) = {
    .add = SN_ISA::combine_bytes::add,
    .multiply = SN_ISA::combine_bytes::multiply,
    .rescale = SN_ISA::combine_bytes::rescale,
};

}  // namespace softneuro
