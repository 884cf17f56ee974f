// AVX2 with FMA: 8 lanes. See simd.h.
#pragma once

#include <immintrin.h>

namespace softneuro::SN_ISA {

constexpr int lanes = 8;
constexpr int registers = 16;

struct Vf {
  __m256 v;
};
struct Vm {
  __m256 m;  // all bits of a lane, or none
};

SN_INLINE Vf load(const float* p) { return {_mm256_loadu_ps(p)}; }
SN_INLINE void store(float* p, Vf x) { _mm256_storeu_ps(p, x.v); }
SN_INLINE void stream(float* p, Vf x) { _mm256_stream_ps(p, x.v); }
SN_INLINE __m256i first_lanes(int n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
SN_INLINE Vf load_n(const float* p, int n) { return {_mm256_maskload_ps(p, first_lanes(n))}; }
SN_INLINE void store_n(float* p, Vf x, int n) { _mm256_maskstore_ps(p, first_lanes(n), x.v); }

SN_INLINE Vf set(float x) { return {_mm256_set1_ps(x)}; }
SN_INLINE Vf zero() { return {_mm256_setzero_ps()}; }
SN_INLINE Vf operator+(Vf a, Vf b) { return {a.v + b.v}; }
SN_INLINE Vf operator-(Vf a, Vf b) { return {a.v - b.v}; }
SN_INLINE Vf operator*(Vf a, Vf b) { return {a.v * b.v}; }
SN_INLINE Vf operator/(Vf a, Vf b) { return {a.v / b.v}; }
SN_INLINE Vf fma(Vf a, Vf b, Vf c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }
SN_INLINE Vf fnma(Vf a, Vf b, Vf c) { return {_mm256_fnmadd_ps(a.v, b.v, c.v)}; }
SN_INLINE Vf abs(Vf x) { return {_mm256_andnot_ps(_mm256_set1_ps(-0.0f), x.v)}; }
SN_INLINE Vf sqrt(Vf x) { return {_mm256_sqrt_ps(x.v)}; }
SN_INLINE Vf floor(Vf x) { return {_mm256_floor_ps(x.v)}; }
SN_INLINE Vf round(Vf x) { return {_mm256_round_ps(x.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)}; }
SN_INLINE Vf copysign(Vf magnitude, Vf sign) {
  const __m256 mask = _mm256_set1_ps(-0.0f);
  return {_mm256_or_ps(_mm256_andnot_ps(mask, magnitude.v), _mm256_and_ps(mask, sign.v))};
}
// The hardware's max and min give their second operand where either is NaN.
SN_INLINE Vf at_least(Vf x, Vf lo) { return {_mm256_max_ps(lo.v, x.v)}; }
SN_INLINE Vf at_most(Vf x, Vf hi) { return {_mm256_min_ps(hi.v, x.v)}; }

SN_INLINE Vm lt(Vf a, Vf b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_LT_OQ)}; }
SN_INLINE Vm le(Vf a, Vf b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_LE_OQ)}; }
SN_INLINE Vm eq(Vf a, Vf b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_EQ_OQ)}; }
SN_INLINE Vm is_nan(Vf a) { return {_mm256_cmp_ps(a.v, a.v, _CMP_UNORD_Q)}; }
SN_INLINE Vf select(Vm m, Vf a, Vf b) { return {_mm256_blendv_ps(b.v, a.v, m.m)}; }
SN_INLINE bool any(Vm m) { return _mm256_movemask_ps(m.m) != 0; }

// Three steps, so that each power of two is a normal number.
SN_INLINE Vf ldexp2(Vf x, Vf n) {
  const __m256i bias = _mm256_set1_epi32(127);
  const __m256i i = _mm256_cvtps_epi32(n.v);
  const __m256i third = _mm256_srai_epi32(_mm256_mullo_epi32(i, _mm256_set1_epi32(21846)), 16);
  const __m256i rest = _mm256_sub_epi32(i, _mm256_add_epi32(third, third));
  const __m256 p = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(third, bias), 23));
  const __m256 q = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(rest, bias), 23));
  return {x.v * p * p * q};
}
SN_INLINE void frexp2(Vf x, Vf& m, Vf& e) {
  // Subnormal numbers are scaled up first.
  const __m256 tiny = _mm256_cmp_ps(x.v, _mm256_set1_ps(0x1p-126f), _CMP_LT_OQ);
  const __m256i bits = _mm256_castps_si256(_mm256_blendv_ps(x.v, x.v * _mm256_set1_ps(0x1p24f), tiny));
  const __m256i exponent = _mm256_sub_epi32(_mm256_srli_epi32(bits, 23), _mm256_set1_epi32(127));
  e.v = _mm256_cvtepi32_ps(exponent) - _mm256_and_ps(tiny, _mm256_set1_ps(24.0f));
  const __m256i fraction = _mm256_and_si256(bits, _mm256_set1_epi32(0x007fffff));
  m.v = _mm256_castsi256_ps(_mm256_or_si256(fraction, _mm256_set1_epi32(0x3f800000)));
}

SN_INLINE void transpose(Vf (&r)[lanes]) {
  __m256 t[8], u[8];
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    t[i] = _mm256_unpacklo_ps(r[i].v, r[i + 1].v);
    t[i + 1] = _mm256_unpackhi_ps(r[i].v, r[i + 1].v);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 8; i += 4) {
    u[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
    u[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
    u[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
    u[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
  }
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    r[j].v = _mm256_permute2f128_ps(u[j], u[4 + j], 0x20);
    r[4 + j].v = _mm256_permute2f128_ps(u[j], u[4 + j], 0x31);
  }
}

// Loads put rows i and 4 + i in the 128-bit lanes, which saves a third of the shuffles.
SN_INLINE void load_columns(const float* p, ptrdiff_t stride, Vf (&x)[lanes]) {
#pragma GCC unroll 2
  for (int j = 0; j < 2; ++j) {
    __m256 t[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const float* row = p + i * stride + 4 * j;
      t[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(row)), _mm_loadu_ps(row + 4 * stride), 1);
    }
    const __m256 a = _mm256_unpacklo_ps(t[0], t[1]), b = _mm256_unpackhi_ps(t[0], t[1]);
    const __m256 c = _mm256_unpacklo_ps(t[2], t[3]), d = _mm256_unpackhi_ps(t[2], t[3]);
    x[4 * j].v = _mm256_shuffle_ps(a, c, 0x44);
    x[4 * j + 1].v = _mm256_shuffle_ps(a, c, 0xee);
    x[4 * j + 2].v = _mm256_shuffle_ps(b, d, 0x44);
    x[4 * j + 3].v = _mm256_shuffle_ps(b, d, 0xee);
  }
}

}  // namespace softneuro::SN_ISA
