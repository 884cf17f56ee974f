// Vectors of which only the lower half counts.
#pragma once

#include "simd/simd.h"

namespace softneuro::SN_ISA {

// True where fma_half is cheaper than fma: CPUs that do 512 bits in two halves (Zen 4); no dearer on the others if
// a is in a register.
#if SN_LEVEL == SN_LEVEL_avx512
constexpr bool has_half = true;
SN_INLINE Vf fma_half(Vf a, Vf b, Vf c) {
  return {_mm512_castps256_ps512(
      _mm256_fmadd_ps(_mm512_castps512_ps256(a.v), _mm512_castps512_ps256(b.v), _mm512_castps512_ps256(c.v)))};
}
// *a * b + c.
SN_INLINE Vf fma_half(const float* a, Vf b, Vf c) {
  return {_mm512_castps256_ps512(
      _mm256_fmadd_ps(_mm256_set1_ps(*a), _mm512_castps512_ps256(b.v), _mm512_castps512_ps256(c.v)))};
}
// *a + b.
SN_INLINE Vf add_half(const float* a, Vf b) {
  return {_mm512_castps256_ps512(_mm256_add_ps(_mm256_set1_ps(*a), _mm512_castps512_ps256(b.v)))};
}
#else
constexpr bool has_half = false;
SN_INLINE Vf fma_half(Vf a, Vf b, Vf c) { return fma(a, b, c); }
SN_INLINE Vf fma_half(const float* a, Vf b, Vf c) { return fma(set(*a), b, c); }
SN_INLINE Vf add_half(const float* a, Vf b) { return set(*a) + b; }
#endif

}  // namespace softneuro::SN_ISA
