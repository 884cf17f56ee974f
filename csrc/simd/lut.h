// Tables of bytes in vectors, where a level can look bytes up.
//
//   sixteenth      16 bytes of a table, for of_sixteenth
//   of_sixteenth   found, or for bytes of x below 16 what a sixteenth has for them; found is zero for these
#pragma once

#include "simd/bytes.h"

namespace softneuro::SN_ISA {

#if SN_VECTORS == SN_LEVEL_avx512 || SN_VECTORS == SN_LEVEL_avx2

constexpr bool looks_up_bytes = true;

SN_INLINE Vb sixteenth(const uint8_t* p) {
  const __m128i all = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
#if SN_VECTORS == SN_LEVEL_avx512
  return (Vb)_mm512_broadcast_i32x4(all);
#else
  return (Vb)_mm256_broadcastsi128_si256(all);
#endif
}

// The upper halves of bytes below 16 become 7, of others 8 and more, for which pshufb gives zero.
SN_INLINE Vb of_sixteenth(Vb found, Vb part, Vb x) {
  const Vb seven = Vb{} + static_cast<uint8_t>(0x70);
#if SN_VECTORS == SN_LEVEL_avx512
  return found | (Vb)_mm512_shuffle_epi8((__m512i)part, _mm512_adds_epu8((__m512i)x, (__m512i)seven));
#else
  return found | (Vb)_mm256_shuffle_epi8((__m256i)part, _mm256_adds_epu8((__m256i)x, (__m256i)seven));
#endif
}

#elif SN_LEVEL == SN_LEVEL_neon

constexpr bool looks_up_bytes = true;

SN_INLINE Vb sixteenth(const uint8_t* p) { return load_row(p); }
// A byte past the table gives zero.
SN_INLINE Vb of_sixteenth(Vb found, Vb part, Vb x) { return found | (Vb)vqtbl1q_u8((uint8x16_t)part, (uint8x16_t)x); }

#else

constexpr bool looks_up_bytes = false;

SN_INLINE Vb sixteenth(const uint8_t*) { return Vb{}; }
SN_INLINE Vb of_sixteenth(Vb found, Vb, Vb) { return found; }

#endif

#if SN_VECTORS == SN_LEVEL_avx512
// For CPUs with AVX512-VBMI: a table of 256 bytes, of which each half is two vectors.
struct HalfTables {
  Vb of[4];
};
[[gnu::target("avx512vbmi")]] SN_INLINE Vb look_up_halves(const HalfTables& table, Vb x) {
  const auto half = [&](int first) __attribute__((target("avx512vbmi"), always_inline)) {
    return _mm512_permutex2var_epi8((__m512i)table.of[first], (__m512i)x, (__m512i)table.of[first + 1]);
  };
  return (Vb)_mm512_mask_blend_epi8(_mm512_movepi8_mask((__m512i)x), half(0), half(2));
}
#endif

}  // namespace softneuro::SN_ISA
