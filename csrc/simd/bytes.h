// Vectors of bytes, four for each lane, as 16-byte pieces whatever the level.
//
//   interleave   of four rows of bytes the quads: byte r of lane i of quads[k], in piece l, is byte 16 l + 4 k + i of
//                row r
//   put_together four vectors of integers as bytes, in the order that interleave has taken them from
// load_n and store_n touch the first n bytes only; what is not loaded is zero.
#pragma once

#include "simd/integers.h"

namespace softneuro::SN_ISA {

constexpr int vector_bytes = lanes * 4;
typedef uint8_t Vb __attribute__((vector_size(vector_bytes)));
typedef uint16_t Vh __attribute__((vector_size(vector_bytes)));

SN_INLINE Vb load_row(const uint8_t* p) {
  Vb x;
  __builtin_memcpy(&x, p, sizeof x);
  return x;
}
SN_INLINE void store_row(uint8_t* p, Vb x) { __builtin_memcpy(p, &x, sizeof x); }
#if SN_VECTORS == SN_LEVEL_avx512
SN_INLINE __mmask64 first_bytes(int n) { return n >= 64 ? ~uint64_t{0} : (uint64_t{1} << n) - 1; }
SN_INLINE Vb load_row_n(const uint8_t* p, int n) { return (Vb)_mm512_maskz_loadu_epi8(first_bytes(n), p); }
SN_INLINE void store_row_n(uint8_t* p, Vb x, int n) { _mm512_mask_storeu_epi8(p, first_bytes(n), (__m512i)x); }
#else
SN_INLINE Vb load_row_n(const uint8_t* p, int n) {
  Vb x{};
  __builtin_memcpy(&x, p, static_cast<size_t>(n));
  return x;
}
SN_INLINE void store_row_n(uint8_t* p, Vb x, int n) { __builtin_memcpy(p, &x, static_cast<size_t>(n)); }
#endif

namespace bytes_detail {

// Elements of the lower (half 0) or upper halves of the pieces of a and b, by turns; `per`: elements of a piece.
template <int half, int per, class V, int... i>
SN_INLINE V unpack(V a, V b, LaneList<i...>) {
  constexpr int all = sizeof...(i);
  return __builtin_shufflevector(a, b, (i / per * per + half * per / 2 + i % per / 2 + i % 2 * all)...);
}
// Every second element of the pieces of a, then of b, piece by piece.
template <int per, class V, int... i>
SN_INLINE V evens(V a, V b, LaneList<i...>) {
  constexpr int all = sizeof...(i);
  return __builtin_shufflevector(a, b, (i / per * per + i % (per / 2) * 2 + (i % per < per / 2 ? 0 : all))...);
}

}  // namespace bytes_detail

SN_INLINE void interleave(Vb a, Vb b, Vb c, Vb d, Vi (&quads)[4]) {
  using Bytes = CountLanes<vector_bytes>::List;
  using Words = CountLanes<vector_bytes / 2>::List;
  const Vh low_ab = (Vh)bytes_detail::unpack<0, 16>(a, b, Bytes()),
           high_ab = (Vh)bytes_detail::unpack<1, 16>(a, b, Bytes());
  const Vh low_cd = (Vh)bytes_detail::unpack<0, 16>(c, d, Bytes()),
           high_cd = (Vh)bytes_detail::unpack<1, 16>(c, d, Bytes());
  quads[0] = (Vi)bytes_detail::unpack<0, 8>(low_ab, low_cd, Words());
  quads[1] = (Vi)bytes_detail::unpack<1, 8>(low_ab, low_cd, Words());
  quads[2] = (Vi)bytes_detail::unpack<0, 8>(high_ab, high_cd, Words());
  quads[3] = (Vi)bytes_detail::unpack<1, 8>(high_ab, high_cd, Words());
}

// What integers become as bytes: x + zero, within [least, most].
struct ByteRange {
  int zero, least, most;
};
SN_INLINE Vb put_together(Vi a, Vi b, Vi c, Vi d, const ByteRange& range) {
#if SN_VECTORS == SN_LEVEL_avx512 || SN_VECTORS == SN_LEVEL_avx2
  // Saturated on the way, to 16 bits and to bytes.
  typedef int16_t Signed __attribute__((vector_size(vector_bytes)));
  const Signed zero = Signed{} + static_cast<int16_t>(range.zero);
  const Vb least = Vb{} + static_cast<uint8_t>(range.least), most = Vb{} + static_cast<uint8_t>(range.most);
#if SN_VECTORS == SN_LEVEL_avx512
  const __m512i ab = _mm512_adds_epi16(_mm512_packs_epi32((__m512i)a, (__m512i)b), (__m512i)zero);
  const __m512i cd = _mm512_adds_epi16(_mm512_packs_epi32((__m512i)c, (__m512i)d), (__m512i)zero);
  return (Vb)_mm512_min_epu8(_mm512_max_epu8(_mm512_packus_epi16(ab, cd), (__m512i)least), (__m512i)most);
#else
  const __m256i ab = _mm256_adds_epi16(_mm256_packs_epi32((__m256i)a, (__m256i)b), (__m256i)zero);
  const __m256i cd = _mm256_adds_epi16(_mm256_packs_epi32((__m256i)c, (__m256i)d), (__m256i)zero);
  return (Vb)_mm256_min_epu8(_mm256_max_epu8(_mm256_packus_epi16(ab, cd), (__m256i)least), (__m256i)most);
#endif
#else
  const auto within = [&](Vi x) {
    x = x < range.least - range.zero ? Vi{} + range.least - range.zero : x;
    x = x > range.most - range.zero ? Vi{} + range.most - range.zero : x;
    return x + range.zero;
  };
  a = within(a), b = within(b), c = within(c), d = within(d);
  using Bytes = CountLanes<vector_bytes>::List;
  using Words = CountLanes<vector_bytes / 2>::List;
  const Vh ab = bytes_detail::evens<8>((Vh)a, (Vh)b, Words()), cd = bytes_detail::evens<8>((Vh)c, (Vh)d, Words());
  return bytes_detail::evens<16>((Vb)ab, (Vb)cd, Bytes());
#endif
}

}  // namespace softneuro::SN_ISA
