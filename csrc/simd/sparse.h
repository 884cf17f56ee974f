// Vectors of which some lanes are zero, kept without these, and vectors from anywhere.
//
//   expand (p, mask)   lane i is the next of the floats at p where bit i of mask is set, else zero; reads `lanes`
//   floats count (mask)       bits that are set, of so many as there are lanes gather (p, index)  lane i is
//   p[index[i]]; indices of 8 or 16 bits
#pragma once

#include "simd/simd.h"

namespace softneuro::SN_ISA {

#if SN_VECTORS == SN_LEVEL_avx512

SN_INLINE Vf expand(const float* p, uint32_t mask) {
  return {_mm512_maskz_expand_ps(static_cast<__mmask16>(mask), _mm512_loadu_ps(p))};
}
SN_INLINE int count(uint32_t mask) { return __builtin_popcount(mask); }
SN_INLINE Vf gather(const float* p, __m512i index) {
  return {_mm512_mask_i32gather_ps(_mm512_setzero_ps(), 0xffff, index, p, 4)};
}
SN_INLINE Vf gather(const float* p, const uint8_t* index) {
  const __m128i all = _mm_loadu_si128(reinterpret_cast<const __m128i*>(index));
  return gather(p, _mm512_maskz_cvtepu8_epi32(0xffff, all));
}
SN_INLINE Vf gather(const float* p, const uint16_t* index) {
  const __m256i all = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(index));
  return gather(p, _mm512_maskz_cvtepu16_epi32(0xffff, all));
}

#elif SN_VECTORS == SN_LEVEL_avx2

// For each mask where its lanes come from; what is negative stands for zero.
struct Places {
  int8_t of[256][8] = {};
  constexpr Places() {
    for (int mask = 0; mask < 256; ++mask) {
      for (int i = 0, next = 0; i < 8; ++i) of[mask][i] = static_cast<int8_t>((mask >> i & 1) != 0 ? next++ : -1);
    }
  }
};
constexpr Places places;

SN_INLINE Vf expand(const float* p, uint32_t mask) {
  const __m256i place = _mm256_cvtepi8_epi32(_mm_loadu_si64(places.of[mask]));
  const __m256 all = _mm256_permutevar8x32_ps(_mm256_loadu_ps(p), place);
  return {_mm256_andnot_ps(_mm256_castsi256_ps(_mm256_srai_epi32(place, 31)), all)};
}
SN_INLINE int count(uint32_t mask) { return __builtin_popcount(mask); }
SN_INLINE Vf gather(const float* p, const uint8_t* index) {
  return {_mm256_i32gather_ps(p, _mm256_cvtepu8_epi32(_mm_loadu_si64(index)), 4)};
}
SN_INLINE Vf gather(const float* p, const uint16_t* index) {
  return {_mm256_i32gather_ps(p, _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(index))), 4)};
}

#else

// Four lanes.
SN_INLINE int count(uint32_t mask) { return static_cast<int>(0x4332322132212110 >> (4 * mask) & 15); }
SN_INLINE Vf expand(const float* p, uint32_t mask) {
  const float lane[4] = {(mask & 1) != 0 ? p[0] : 0, (mask & 2) != 0 ? p[count(mask & 1)] : 0,
                         (mask & 4) != 0 ? p[count(mask & 3)] : 0, (mask & 8) != 0 ? p[count(mask & 7)] : 0};
  return load(lane);
}
template <class Index>
SN_INLINE Vf gather(const float* p, const Index* index) {
  const float lane[4] = {p[index[0]], p[index[1]], p[index[2]], p[index[3]]};
  return load(lane);
}

#endif

}  // namespace softneuro::SN_ISA
