// Elements of other types than float32 as vectors of floats: loads are exact, stores round half to even.
//
// Halves keep NaN, and what float16 cannot hold becomes infinite. What is loaded and stored of eight bits is the
// integer; stores take integers of the type's range. load_n and store_n touch the first n elements only.
#pragma once

#include "base/dtype.h"
#include "simd/integers.h"

namespace softneuro::SN_ISA {

// widen, narrow: integers from elements of 8 or 16 bits, and their low bits back. nearest: of NaN an integer whose low
// bits are zeros.
#if SN_VECTORS == SN_LEVEL_avx512
SN_INLINE Vi nearest(Vf x) { return (Vi)_mm512_maskz_cvtps_epi32(0xffff, x.v); }
// Masks take what would be a loop on other levels.
SN_INLINE Vf load_n(const Float16* p, int n) {
  return {_mm512_maskz_cvtph_ps(0xffff, _mm256_maskz_loadu_epi16(first_lanes(n), p))};
}
SN_INLINE void store_n(Float16* p, Vf x, int n) {
  _mm256_mask_storeu_epi16(p, first_lanes(n), _mm512_maskz_cvtps_ph(0xffff, x.v, _MM_FROUND_TO_NEAREST_INT));
}
SN_INLINE Vi widen_n(const uint16_t* p, int n) {
  return (Vi)_mm512_maskz_cvtepu16_epi32(0xffff, _mm256_maskz_loadu_epi16(first_lanes(n), p));
}
SN_INLINE Vi widen_n(const uint8_t* p, int n) {
  return (Vi)_mm512_maskz_cvtepu8_epi32(0xffff, _mm_maskz_loadu_epi8(first_lanes(n), p));
}
SN_INLINE Vi widen_n(const int8_t* p, int n) {
  return (Vi)_mm512_maskz_cvtepi8_epi32(0xffff, _mm_maskz_loadu_epi8(first_lanes(n), p));
}
SN_INLINE void narrow_n(uint16_t* p, Vi x, int n) {
  _mm256_mask_storeu_epi16(p, first_lanes(n), _mm512_maskz_cvtepi32_epi16(0xffff, (__m512i)x));
}
SN_INLINE void narrow_n(uint8_t* p, Vi x, int n) {
  _mm_mask_storeu_epi8(p, first_lanes(n), _mm512_maskz_cvtepi32_epi8(0xffff, (__m512i)x));
}
SN_INLINE Vf load(const Float16* p) { return load_n(p, lanes); }
SN_INLINE void store(Float16* p, Vf x) { store_n(p, x, lanes); }
template <class T>
SN_INLINE Vi widen(const T* p) {
  return widen_n(p, lanes);
}
template <class T>
SN_INLINE void narrow(T* p, Vi x) {
  narrow_n(p, x, lanes);
}
#elif SN_VECTORS == SN_LEVEL_avx2
SN_INLINE Vi nearest(Vf x) { return (Vi)_mm256_cvtps_epi32(x.v); }
SN_INLINE Vf load(const Float16* p) { return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))}; }
SN_INLINE void store(Float16* p, Vf x) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(x.v, _MM_FROUND_TO_NEAREST_INT));
}
SN_INLINE Vi widen(const uint16_t* p) {
  return (Vi)_mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
SN_INLINE Vi widen(const uint8_t* p) { return (Vi)_mm256_cvtepu8_epi32(_mm_loadu_si64(p)); }
SN_INLINE Vi widen(const int8_t* p) { return (Vi)_mm256_cvtepi8_epi32(_mm_loadu_si64(p)); }
SN_INLINE void narrow(uint16_t* p, Vi x) {
  const __m128i low = _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, -1, -1, -1, -1, -1, -1, -1, -1);
  const __m256i halves = _mm256_shuffle_epi8((__m256i)x, _mm256_broadcastsi128_si256(low));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_castsi256_si128(_mm256_permute4x64_epi64(halves, 0x08)));
}
SN_INLINE void narrow(uint8_t* p, Vi x) {
  const __m128i low = _mm_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
  const __m256i quarters = _mm256_shuffle_epi8((__m256i)x, _mm256_broadcastsi128_si256(low));
  _mm_storeu_si64(p, _mm_unpacklo_epi32(_mm256_castsi256_si128(quarters), _mm256_extracti128_si256(quarters, 1)));
}
#elif SN_LEVEL == SN_LEVEL_neon
SN_INLINE Vi nearest(Vf x) { return (Vi)vcvtnq_s32_f32(x.v); }
SN_INLINE Vf load(const Float16* p) { return {vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(&p->bits)))}; }
SN_INLINE void store(Float16* p, Vf x) { vst1_u16(&p->bits, vreinterpret_u16_f16(vcvt_f16_f32(x.v))); }
SN_INLINE Vi widen(const uint16_t* p) { return (Vi)vmovl_u16(vld1_u16(p)); }
SN_INLINE Vi widen(const uint8_t* p) {
  uint32_t x;
  __builtin_memcpy(&x, p, sizeof x);
  return (Vi)vmovl_u16(vget_low_u16(vmovl_u8(vcreate_u8(x))));
}
SN_INLINE Vi widen(const int8_t* p) {
  uint32_t x;
  __builtin_memcpy(&x, p, sizeof x);
  return (Vi)vmovl_s16(vget_low_s16(vmovl_s8(vcreate_s8(x))));
}
SN_INLINE void narrow(uint16_t* p, Vi x) { vst1_u16(p, vmovn_u32((uint32x4_t)x)); }
SN_INLINE void narrow(uint8_t* p, Vi x) {
  const uint16x4_t halves = vmovn_u32((uint32x4_t)x);
  const uint32_t low = vget_lane_u32(vreinterpret_u32_u8(vmovn_u16(vcombine_u16(halves, halves))), 0);
  __builtin_memcpy(p, &low, sizeof low);
}
#else
SN_INLINE Vi nearest(Vf x) { return __builtin_convertvector(round(x).v, Vi); }
template <class T>
SN_INLINE Vi widen(const T* p) {
  typedef T Elements __attribute__((vector_size(lanes * sizeof(T))));
  Elements x;
  __builtin_memcpy(&x, p, sizeof x);
  return __builtin_convertvector(x, Vi);
}
template <class T>
SN_INLINE void narrow(T* p, Vi x) {
  typedef T Elements __attribute__((vector_size(lanes * sizeof(T))));
  const Elements low = __builtin_convertvector(x, Elements);
  __builtin_memcpy(p, &low, sizeof low);
}
SN_INLINE Vf load(const Float16* p) {
  const Vi x = widen(&p->bits), size = x & 0x7fff, infinite = size >= 0x7c00, payload = (x & 0x3ff) << 13;
  const Vi special = payload | 0x7f800000 | ((payload != 0) & 0x400000);  // NaN becomes quiet
  const Vi small = (Vi)(__builtin_convertvector(size, Float4) * 0x1p-24f), normal = (size << 13) + 0x38000000;
  return {(Float4)((infinite ? special : size < 0x400 ? small : normal) | (x & 0x8000) << 16)};
}
SN_INLINE void store(Float16* p, Vf x) {
  const Vi bits = (Vi)x.v, size = bits & INT32_MAX, nan = size > 0x7f800000;
  const Vi rebased = size - 0x38000000, normal = (rebased + 0xfff + (rebased >> 13 & 1)) >> 13;
  // One unit of 0.5's last place is the smallest float16.
  const Vi small = (Vi)((Float4)size + 0.5f) - 0x3f000000;
  const Vi number = size >= 0x477ff000 ? Vi{} + 0x7c00 : size < 0x38800000 ? small : normal;
  narrow(&p->bits, (nan ? 0x7e00 | (size >> 13 & 0x3ff) : number) | (bits >> 16 & 0x8000));
}
#endif

// Levels without masks go through a copy: what lies past n elements is not touched.
#if SN_VECTORS != SN_LEVEL_avx512
SN_INLINE Vf load_n(const Float16* p, int n) {
  Float16 copy[lanes] = {};
  for (int i = 0; i < n; ++i) copy[i] = p[i];
  return load(copy);
}
SN_INLINE void store_n(Float16* p, Vf x, int n) {
  Float16 copy[lanes];
  store(copy, x);
  for (int i = 0; i < n; ++i) p[i] = copy[i];
}
template <class T>
SN_INLINE Vi widen_n(const T* p, int n) {
  T copy[lanes] = {};
  for (int i = 0; i < n; ++i) copy[i] = p[i];
  return widen(copy);
}
template <class T>
SN_INLINE void narrow_n(T* p, Vi x, int n) {
  T copy[lanes];
  narrow(copy, x);
  for (int i = 0; i < n; ++i) p[i] = copy[i];
}
#endif

SN_INLINE Vi load_n(const int32_t* p, int n) { return bits(load_n(reinterpret_cast<const float*>(p), n)); }

SN_INLINE Vf load(const BFloat16* p) { return from_bits(widen(&p->bits) << 16); }
SN_INLINE Vf load_n(const BFloat16* p, int n) { return from_bits(widen_n(&p->bits, n) << 16); }
// Rounds to bfloat16, whose bits are the low ones.
SN_INLINE Vi to_bfloat16(Vf x) {
  typedef uint32_t Unsigned __attribute__((vector_size(lanes * 4)));
  const Unsigned all = (Unsigned)x.v, upper = all >> 16;
  const Unsigned rounded = (all + 0x7fff + (upper & 1)) >> 16;
  return (Vi)((all & 0x7fffffff) > 0x7f800000 ? upper | 0x40 : rounded);  // NaN becomes quiet
}
SN_INLINE void store(BFloat16* p, Vf x) { narrow(&p->bits, to_bfloat16(x)); }
SN_INLINE void store_n(BFloat16* p, Vf x, int n) { narrow_n(&p->bits, to_bfloat16(x), n); }

SN_INLINE Vf load(const uint8_t* p) { return to_float(widen(p)); }
SN_INLINE Vf load(const int8_t* p) { return to_float(widen(p)); }
SN_INLINE Vf load_n(const uint8_t* p, int n) { return to_float(widen_n(p, n)); }
SN_INLINE Vf load_n(const int8_t* p, int n) { return to_float(widen_n(p, n)); }
SN_INLINE void store(uint8_t* p, Vi x) { narrow(p, x); }
SN_INLINE void store(int8_t* p, Vi x) { narrow(reinterpret_cast<uint8_t*>(p), x); }
SN_INLINE void store_n(uint8_t* p, Vi x, int n) { narrow_n(p, x, n); }
SN_INLINE void store_n(int8_t* p, Vi x, int n) { narrow_n(reinterpret_cast<uint8_t*>(p), x, n); }

}  // namespace softneuro::SN_ISA
