// Pixels of bytes, of which a vector has `lanes`.
#pragma once

#include "simd/elements.h"

namespace softneuro::SN_ISA {

#if SN_VECTORS == SN_LEVEL_avx512
SN_INLINE Vi load_threes(const uint8_t* p) {
  const __m512i all = _mm512_maskz_loadu_epi32(0xfff, p);
  const __m512i four_each = _mm512_setr_epi32(0, 1, 2, 2, 3, 4, 5, 5, 6, 7, 8, 8, 9, 10, 11, 11);
  const __m128i apart = _mm_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1);
  const __m512i pixels = _mm512_maskz_permutexvar_epi32(0xffff, four_each, all);
  return (Vi)_mm512_shuffle_epi8(pixels, _mm512_maskz_broadcast_i32x4(0xffff, apart));
}
#elif SN_VECTORS == SN_LEVEL_avx2
SN_INLINE Vi load_threes(const uint8_t* p) {
  // The upper half begins 4 bytes into what ends with the last pixel.
  const __m128i low = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  const __m128i high = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8));
  const __m256i apart = _mm256_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11, -1,  //
                                         4, 5, 6, -1, 7, 8, 9, -1, 10, 11, 12, -1, 13, 14, 15, -1);
  return (Vi)_mm256_shuffle_epi8(_mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1), apart);
}
#else
SN_INLINE Vi load_threes(const uint8_t* p) {
  Vi x{};
  for (int i = 0; i < lanes; ++i, p += 3) x[i] = p[0] | p[1] << 8 | p[2] << 16;
  return x;
}
#endif

// The bytes of pixels of `channels` (2 to 4) bytes each, the first in the low bits of a lane. Nothing else is read.
template <int channels>
SN_INLINE Vi load_pixels(const uint8_t* p) {
  if constexpr (channels == 2) {
    return widen(reinterpret_cast<const uint16_t*>(p));
  } else if constexpr (channels == 3) {
    return load_threes(p);
  } else {
    return load(reinterpret_cast<const int32_t*>(p));
  }
}

}  // namespace softneuro::SN_ISA
