// Elements of a byte made of four vectors of integers at once, where that takes fewer steps than one by one.
//
//   narrow_four<T>(a, b, c, d, zero, least)     x + zero of each, at least `least` and at most what T has
//   store_four<first, vectors>(p, bytes, n)     the first n elements of those from vector `first` on
#pragma once

#include "simd/elements.h"

namespace softneuro::SN_ISA {

#if SN_VECTORS == SN_LEVEL_avx512

constexpr bool has_fours = true;

template <class T>
SN_INLINE __m512i narrow_four(Vi a, Vi b, Vi c, Vi d, int zero, int least) {
  const __m512i offset = _mm512_set1_epi16(static_cast<int16_t>(zero));
  const __m512i low = _mm512_adds_epi16(_mm512_packs_epi32((__m512i)a, (__m512i)b), offset);
  const __m512i high = _mm512_adds_epi16(_mm512_packs_epi32((__m512i)c, (__m512i)d), offset);
  const __m512i least_bytes = _mm512_set1_epi8(static_cast<char>(least));
  const __m512i in_order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  __m512i bytes;
  if constexpr (static_cast<T>(-1) < 0) {
    bytes = _mm512_max_epi8(_mm512_packs_epi16(low, high), least_bytes);
  } else {
    bytes = _mm512_max_epu8(_mm512_packus_epi16(low, high), least_bytes);
  }
  return _mm512_maskz_permutexvar_epi32(0xffff, in_order, bytes);
}

template <int first, int vectors>
SN_INLINE void store_four(void* p, __m512i bytes, int n) {
  const uint64_t mask = ~uint64_t{0} >> (64 - n);
  if constexpr (vectors > 2) {
    static_assert(first == 0);
    _mm512_mask_storeu_epi8(p, mask, bytes);
  } else if constexpr (vectors == 2) {
    const __m256i half = first == 0 ? _mm512_castsi512_si256(bytes) : _mm512_maskz_extracti64x4_epi64(0xf, bytes, 1);
    _mm256_mask_storeu_epi8(p, static_cast<__mmask32>(mask), half);
  } else {
    _mm_mask_storeu_epi8(p, static_cast<__mmask16>(mask), _mm512_maskz_extracti32x4_epi32(0xf, bytes, first));
  }
}

#else

constexpr bool has_fours = false;

#endif

}  // namespace softneuro::SN_ISA
