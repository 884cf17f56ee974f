// Sums of two neighbouring products of signed numbers of 16 bits in each lane.
#pragma once

#include "simd/integers.h"

namespace softneuro::SN_ISA {

typedef int16_t Halves __attribute__((vector_size(lanes * 4)));

// a[0] * b[0] + a[1] * b[1]. It wraps around only where all four are -32768.
SN_INLINE Vi sum_of_pair(Halves a, Halves b) {
#if SN_VECTORS == SN_LEVEL_avx512
  return (Vi)_mm512_madd_epi16((__m512i)a, (__m512i)b);
#elif SN_VECTORS == SN_LEVEL_avx2
  return (Vi)_mm256_madd_epi16((__m256i)a, (__m256i)b);
#elif defined(__SSE2__)
  return (Vi)__builtin_ia32_pmaddwd128(a, b);
#else
  const Vi x = (Vi)a, y = (Vi)b;
  return (x << 16 >> 16) * (y << 16 >> 16) + (x >> 16) * (y >> 16);
#endif
}
SN_INLINE Vi add_pair(Vi sum, Halves a, Halves b) {
#if SN_LEVEL == SN_LEVEL_avxvnni
  return (Vi)_mm256_dpwssd_avx_epi32((__m256i)sum, (__m256i)a, (__m256i)b);
#elif SN_LEVEL == SN_LEVEL_avx512vnni
  return (Vi)_mm512_dpwssd_epi32((__m512i)sum, (__m512i)a, (__m512i)b);
#else
  return sum + sum_of_pair(a, b);
#endif
}

}  // namespace softneuro::SN_ISA
