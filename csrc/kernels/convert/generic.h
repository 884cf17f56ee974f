#include "kernels/convert/convert.h"
#include "kernels/store/visit.h"

namespace softneuro::SN_ISA {

// Types that kernels/store has vectors of. The compiler vectorises the loops of others.
constexpr bool is_stored(DType type) {
  return type == DType::float16 || type == DType::bfloat16 || type == DType::uint8 || type == DType::int8;
}

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

template <DType type, class T>
inline void from(const void* src, void* dst, int64_t count) {
  const T* SN_RESTRICT a = static_cast<const T*>(src);
  float* SN_RESTRICT b = static_cast<float*>(dst);
  if constexpr (is_stored(type)) {
    read_values({.type = type}, src, 0, count, b);
  } else {
    for (int64_t i = 0; i < count; ++i) b[i] = number(a[i]);
  }
}

template <DType type, class T>
inline void to(const void* src, void* dst, int64_t count) {
  const float* SN_RESTRICT a = static_cast<const float*>(src);
  T* SN_RESTRICT b = static_cast<T*>(dst);
  if constexpr (is_stored(type)) {
    write_values({.type = type}, a, dst, 0, count);
  } else {
    for (int64_t i = 0; i < count; ++i) set_element(b + i, a[i]);
  }
}

}  // namespace softneuro::SN_ISA

namespace softneuro {

#define SN_ENTRIES(name, type) SN_ISA::from<DType::name, type>, SN_ISA::to<DType::name, type>,
SN_KERNEL_TABLE(ConvertKernels, convert) = {SN_CONVERTED(SN_ENTRIES)};
#undef SN_ENTRIES

}  // namespace softneuro
