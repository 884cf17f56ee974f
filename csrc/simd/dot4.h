// Sums of four neighbouring products of bytes in each lane, unsigned ones times signed ones: exact at every level.
//
//   Dot4<narrow>::Bytes spread(p)    the four unsigned bytes at p, for every lane
//   Dot4<narrow>::Bytes bytes(x)     four unsigned bytes of each lane
//   Dot4<narrow>::Weights load(p)    four signed bytes for each lane
//   Dot4<narrow>::add(sum, a, w)     sum + a[0] * w[0] + a[1] * w[1] + a[2] * w[2] + a[3] * w[3]
//
// narrow: no a[0] * w[0] + a[1] * w[1], nor that of the other two, leaves 16 bits. Some levels are faster then.
#pragma once

#include "simd/pairs.h"

namespace softneuro::SN_ISA {

SN_INLINE Vi spread_bytes(const uint8_t* p) {
  int32_t bytes;
  __builtin_memcpy(&bytes, p, sizeof bytes);
  return Vi{} + bytes;
}
// x as it is here: compilers else add up four sums in another order, with registers for all that they do not have, and
// take bytes apart before these are in every lane.
SN_INLINE Vi keep(Vi x) {
#if SN_VECTORS == SN_LEVEL_avx512
  __asm__("" : "+v"(x));
#elif SN_LEVEL == SN_LEVEL_neon
  __asm__("" : "+w"(x));
#elif defined(__SSE2__)
  __asm__("" : "+x"(x));
#endif
  return x;
}
SN_INLINE Vi load_bytes(const int8_t* p) {
  Vi x;
  __builtin_memcpy(&x, p, sizeof x);
  return x;
}

#if SN_LEVEL == SN_LEVEL_avxvnni || SN_LEVEL == SN_LEVEL_avx512vnni || SN_LEVEL == SN_LEVEL_amx

constexpr bool dot4_likes_narrow = false;

template <bool>
struct Dot4 {
  using Bytes = Vi;
  using Weights = Vi;
  static SN_INLINE Bytes bytes(Vi all) { return all; }
  static SN_INLINE Bytes spread(const uint8_t* p) { return spread_bytes(p); }
  static SN_INLINE Weights load(const int8_t* p) { return load_bytes(p); }
  static SN_INLINE Vi add(Vi sum, Bytes a, Weights w) {
#if SN_LEVEL == SN_LEVEL_avxvnni
    return (Vi)_mm256_dpbusd_avx_epi32((__m256i)sum, (__m256i)a, (__m256i)w);
#else
    return (Vi)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)a, (__m512i)w);
#endif
  }
};

#else

// Bytes as numbers of 16 bits, every second one each.
struct Apart {
  Halves even, odd;
};

template <bool narrow>
struct Dot4 {
  using Bytes = Apart;
  using Weights = Apart;
  static SN_INLINE Bytes bytes(Vi all) { return {(Halves)(all & 0xff00ff), (Halves)(all >> 8 & 0xff00ff)}; }
  static SN_INLINE Bytes spread(const uint8_t* p) { return bytes(keep(spread_bytes(p))); }
  static SN_INLINE Weights load(const int8_t* p) {
    const Halves all = (Halves)load_bytes(p);
    return {all << 8 >> 8, all >> 8};
  }
  static SN_INLINE Vi add(Vi sum, const Bytes& a, const Weights& w) {
    return keep(keep(sum + sum_of_pair(a.even, w.even)) + sum_of_pair(a.odd, w.odd));
  }
};

#if SN_VECTORS == SN_LEVEL_avx512 || SN_VECTORS == SN_LEVEL_avx2

constexpr bool dot4_likes_narrow = true;

template <>
struct Dot4<true> {
  using Bytes = Vi;
  using Weights = Vi;
  static SN_INLINE Bytes bytes(Vi all) { return all; }
  static SN_INLINE Bytes spread(const uint8_t* p) { return spread_bytes(p); }
  static SN_INLINE Weights load(const int8_t* p) { return load_bytes(p); }
  static SN_INLINE Vi add(Vi sum, Bytes a, Weights w) {
#if SN_VECTORS == SN_LEVEL_avx512
    const auto pairs = (Halves)_mm512_maddubs_epi16((__m512i)a, (__m512i)w);
#else
    const auto pairs = (Halves)_mm256_maddubs_epi16((__m256i)a, (__m256i)w);
#endif
    return keep(sum + sum_of_pair(pairs, Halves{} + 1));
  }
};

#else

constexpr bool dot4_likes_narrow = false;

#endif
#endif

}  // namespace softneuro::SN_ISA
