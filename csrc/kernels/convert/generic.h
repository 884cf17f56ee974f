#include "kernels/convert/convert.h"
#include "simd/elements.h"

namespace softneuro::SN_ISA {

// Types that simd/elements.h has vectors of, and what their stores take. The compiler vectorises the loops of others.
template <class T>
inline constexpr bool has_vectors = false;
template <>
inline constexpr bool has_vectors<Float16> = true;
template <>
inline constexpr bool has_vectors<BFloat16> = true;
template <>
inline constexpr bool has_vectors<uint8_t> = true;
template <>
inline constexpr bool has_vectors<int8_t> = true;

SN_INLINE Vf rounded(Vf x, const Float16*) { return x; }
SN_INLINE Vf rounded(Vf x, const BFloat16*) { return x; }
SN_INLINE Vi rounded(Vf x, const uint8_t*) { return nearest(x); }
SN_INLINE Vi rounded(Vf x, const int8_t*) { return nearest(x); }

template <class T>
SN_INLINE float number(T x) {
  return static_cast<float>(x);
}
SN_INLINE float number(Bool x) { return x.truth != 0 ? 1.0f : 0.0f; }
template <class T>
SN_INLINE void set_element(T* p, float x) {
  *p = static_cast<T>(x);
}
SN_INLINE void set_element(Bool* p, float x) { p->truth = x != 0 ? 1 : 0; }

template <class T>
inline void from(const void* src, void* dst, int64_t count) {
  const T* SN_RESTRICT a = static_cast<const T*>(src);
  float* SN_RESTRICT b = static_cast<float*>(dst);
  if constexpr (has_vectors<T>) {
    int64_t i = 0;
    for (; i + lanes <= count; i += lanes) store(b + i, load(a + i));
    const int rest = static_cast<int>(count - i);
    if (rest > 0) store_n(b + i, load_n(a + i, rest), rest);
  } else {
    for (int64_t i = 0; i < count; ++i) b[i] = number(a[i]);
  }
}

template <class T>
inline void to(const void* src, void* dst, int64_t count) {
  const float* SN_RESTRICT a = static_cast<const float*>(src);
  T* SN_RESTRICT b = static_cast<T*>(dst);
  if constexpr (has_vectors<T>) {
    int64_t i = 0;
    for (; i + lanes <= count; i += lanes) store(b + i, rounded(load(a + i), b));
    const int rest = static_cast<int>(count - i);
    if (rest > 0) store_n(b + i, rounded(load_n(a + i, rest), b), rest);
  } else {
    for (int64_t i = 0; i < count; ++i) set_element(b + i, a[i]);
  }
}

}  // namespace softneuro::SN_ISA

namespace softneuro {

#define SN_ENTRIES(name, type) SN_ISA::from<type>, SN_ISA::to<type>,
SN_KERNEL_TABLE(ConvertKernels, convert) = {SN_CONVERTED(SN_ENTRIES)};
#undef SN_ENTRIES

}  // namespace softneuro
