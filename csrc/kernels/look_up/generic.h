// look_up at one level. Contract: look_up.h.
#pragma once

#include "base/cpu_traits.h"
#include "kernels/look_up/look_up.h"
#include "simd/simd.h"

namespace softneuro::SN_ISA {
namespace look_up {

SN_INLINE void one_by_one(const uint8_t* table, const uint8_t* src, uint8_t* dst, int64_t count) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    uint64_t all, found = 0;
    __builtin_memcpy(&all, src + i, 8);
    for (int k = 0; k < 64; k += 8) found |= uint64_t{table[all >> k & 255]} << k;
    __builtin_memcpy(dst + i, &found, 8);
  }
  for (; i < count; ++i) dst[i] = table[src[i]];
}

#if SN_LEVEL == SN_LEVEL_avx512 || SN_LEVEL == SN_LEVEL_avx2

// A sixteenth of the table at a time, for bytes whose upper half is its number. The upper halves of these become 7, of
// others 8 and more, for which pshufb gives zero.
#if SN_LEVEL == SN_LEVEL_avx512
using Bytes = __m512i;
SN_INLINE Bytes all_bytes(char x) { return _mm512_set1_epi8(x); }
SN_INLINE Bytes load_bytes(const uint8_t* p) { return _mm512_loadu_si512(p); }
SN_INLINE void store_bytes(uint8_t* p, Bytes x) { _mm512_storeu_si512(p, x); }
SN_INLINE Bytes sixteenth(const uint8_t* p) {
  return _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
SN_INLINE Bytes of_sixteenth(Bytes found, Bytes part, Bytes x) {
  return _mm512_or_si512(found, _mm512_shuffle_epi8(part, _mm512_adds_epu8(x, all_bytes(0x70))));
}
SN_INLINE Bytes flip(Bytes x, char bits) { return _mm512_xor_si512(x, all_bytes(bits)); }
#else
using Bytes = __m256i;
SN_INLINE Bytes all_bytes(char x) { return _mm256_set1_epi8(x); }
SN_INLINE Bytes load_bytes(const uint8_t* p) { return _mm256_loadu_si256(reinterpret_cast<const Bytes*>(p)); }
SN_INLINE void store_bytes(uint8_t* p, Bytes x) { _mm256_storeu_si256(reinterpret_cast<Bytes*>(p), x); }
SN_INLINE Bytes sixteenth(const uint8_t* p) {
  return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
SN_INLINE Bytes of_sixteenth(Bytes found, Bytes part, Bytes x) {
  return _mm256_or_si256(found, _mm256_shuffle_epi8(part, _mm256_adds_epu8(x, all_bytes(0x70))));
}
SN_INLINE Bytes flip(Bytes x, char bits) { return _mm256_xor_si256(x, all_bytes(bits)); }
#endif

inline void by_sixteenths(const ByteTable& table, const uint8_t* src, uint8_t* dst, int64_t count) {
  constexpr int together = sizeof(Bytes);
  int64_t i = 0;
  for (; i + together <= count; i += together) {
    const Bytes x = load_bytes(src + i);
    Bytes found{};
    for (int part = 0; part < 16; ++part) {
      found = of_sixteenth(found, sixteenth(table.data() + 16 * part), flip(x, static_cast<char>(16 * part)));
    }
    store_bytes(dst + i, found);
  }
  one_by_one(table.data(), src + i, dst + i, count - i);
}

#if SN_LEVEL == SN_LEVEL_avx512
[[gnu::target("avx512vbmi")]] inline void by_halves(const ByteTable& table, const uint8_t* src, uint8_t* dst,
                                                    int64_t count) {
  const uint8_t* t = table.data();
  const __m512i a = _mm512_loadu_si512(t), b = _mm512_loadu_si512(t + 64), c = _mm512_loadu_si512(t + 128),
                d = _mm512_loadu_si512(t + 192);
  for (int64_t i = 0; i < count; i += 64) {
    const __mmask64 there = count - i < 64 ? (__mmask64{1} << (count - i)) - 1 : ~__mmask64{0};
    const __m512i x = _mm512_maskz_loadu_epi8(there, src + i);
    const __m512i low = _mm512_permutex2var_epi8(a, x, b), high = _mm512_permutex2var_epi8(c, x, d);
    _mm512_mask_storeu_epi8(dst + i, there, _mm512_mask_blend_epi8(_mm512_movepi8_mask(x), low, high));
  }
}
#endif

inline void run(const ByteTable& table, const uint8_t* src, uint8_t* dst, int64_t count) {
#if SN_LEVEL == SN_LEVEL_avx512
  if (permutes_bytes()) return by_halves(table, src, dst, count);
#endif
  by_sixteenths(table, src, dst, count);
}

#elif SN_LEVEL == SN_LEVEL_neon

// A quarter of the table at a time: indices past it leave what there is.
inline void run(const ByteTable& table, const uint8_t* src, uint8_t* dst, int64_t count) {
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    const uint8x16_t x = vld1q_u8(src + i);
    uint8x16_t found = vdupq_n_u8(0);
    for (int part = 0; part < 4; ++part) {
      const uint8x16x4_t quarter = vld1q_u8_x4(table.data() + 64 * part);
      found = vqtbx4q_u8(found, quarter, vsubq_u8(x, vdupq_n_u8(static_cast<uint8_t>(64 * part))));
    }
    vst1q_u8(dst + i, found);
  }
  one_by_one(table.data(), src + i, dst + i, count - i);
}

#else

inline void run(const ByteTable& table, const uint8_t* src, uint8_t* dst, int64_t count) {
  one_by_one(table.data(), src, dst, count);
}

#endif

}  // namespace look_up
}  // namespace softneuro::SN_ISA

namespace softneuro {

SN_KERNEL_TABLE(LookUpKernel, look_up) = SN_ISA::look_up::run;

}  // namespace softneuro
