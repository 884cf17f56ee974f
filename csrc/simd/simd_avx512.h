// AVX-512 F, BW, DQ, VL: 16 lanes. See simd.h.
#pragma once

// Some of g++ 12's own intrinsics headers trip -Wmaybe-uninitialized when inlined.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop

namespace softneuro::SN_ISA {

constexpr int lanes = 16;
constexpr int registers = 32;

struct Vf {
  __m512 v;
};
struct Vm {
  __mmask16 m;
};

SN_INLINE Vf load(const float* p) { return {_mm512_loadu_ps(p)}; }
SN_INLINE void store(float* p, Vf x) { _mm512_storeu_ps(p, x.v); }
SN_INLINE void stream(float* p, Vf x) { _mm512_stream_ps(p, x.v); }
SN_INLINE __mmask16 first_lanes(int n) { return static_cast<__mmask16>((1u << n) - 1); }
SN_INLINE Vf load_n(const float* p, int n) { return {_mm512_maskz_loadu_ps(first_lanes(n), p)}; }
SN_INLINE void store_n(float* p, Vf x, int n) { _mm512_mask_storeu_ps(p, first_lanes(n), x.v); }

SN_INLINE Vf set(float x) { return {_mm512_set1_ps(x)}; }
SN_INLINE Vf zero() { return {_mm512_setzero_ps()}; }
SN_INLINE Vf operator+(Vf a, Vf b) { return {a.v + b.v}; }
SN_INLINE Vf operator-(Vf a, Vf b) { return {a.v - b.v}; }
SN_INLINE Vf operator*(Vf a, Vf b) { return {a.v * b.v}; }
SN_INLINE Vf operator/(Vf a, Vf b) { return {a.v / b.v}; }
SN_INLINE Vf fma(Vf a, Vf b, Vf c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
SN_INLINE Vf fnma(Vf a, Vf b, Vf c) { return {_mm512_fnmadd_ps(a.v, b.v, c.v)}; }
SN_INLINE Vf abs(Vf x) { return {_mm512_abs_ps(x.v)}; }
SN_INLINE Vf sqrt(Vf x) { return {_mm512_maskz_sqrt_ps(0xffff, x.v)}; }
SN_INLINE Vf floor(Vf x) {
  return {_mm512_maskz_roundscale_ps(0xffff, x.v, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)};
}
SN_INLINE Vf round(Vf x) {
  return {_mm512_maskz_roundscale_ps(0xffff, x.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
SN_INLINE Vf copysign(Vf magnitude, Vf sign) {
  const __m512 mask = _mm512_set1_ps(-0.0f);
  return {_mm512_or_ps(_mm512_andnot_ps(mask, magnitude.v), _mm512_and_ps(mask, sign.v))};
}
// The hardware's max and min give their second operand where either is NaN. (The masked forms are free of g++ 12's
// warning about the plain ones; the all-ones mask is dropped.)
SN_INLINE Vf at_least(Vf x, Vf lo) { return {_mm512_maskz_max_ps(0xffff, lo.v, x.v)}; }
SN_INLINE Vf at_most(Vf x, Vf hi) { return {_mm512_maskz_min_ps(0xffff, hi.v, x.v)}; }

SN_INLINE Vm lt(Vf a, Vf b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)}; }
SN_INLINE Vm le(Vf a, Vf b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LE_OQ)}; }
SN_INLINE Vm eq(Vf a, Vf b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_EQ_OQ)}; }
SN_INLINE Vm is_nan(Vf a) { return {_mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q)}; }
SN_INLINE Vf select(Vm m, Vf a, Vf b) { return {_mm512_mask_mov_ps(b.v, m.m, a.v)}; }
SN_INLINE bool any(Vm m) { return m.m != 0; }

SN_INLINE Vf ldexp2(Vf x, Vf n) { return {_mm512_maskz_scalef_ps(0xffff, x.v, n.v)}; }
SN_INLINE void frexp2(Vf x, Vf& m, Vf& e) {
  m.v = _mm512_maskz_getmant_ps(0xffff, x.v, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_src);
  e.v = _mm512_maskz_getexp_ps(0xffff, x.v);
}

// The first, or the last, two floats of every 128 bits of a, then of b.
SN_INLINE __m512 low_pairs(__m512 a, __m512 b) { return _mm512_maskz_shuffle_ps(0xffff, a, b, 0x44); }
SN_INLINE __m512 high_pairs(__m512 a, __m512 b) { return _mm512_maskz_shuffle_ps(0xffff, a, b, 0xee); }

SN_INLINE void transpose(Vf (&r)[lanes]) {
  __m512 t[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_maskz_unpacklo_ps(0xffff, r[i].v, r[i + 1].v);
    t[i + 1] = _mm512_maskz_unpackhi_ps(0xffff, r[i].v, r[i + 1].v);
  }
  __m512 u[16];
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    u[i] = low_pairs(t[i], t[i + 2]);
    u[i + 1] = high_pairs(t[i], t[i + 2]);
    u[i + 2] = low_pairs(t[i + 1], t[i + 3]);
    u[i + 3] = high_pairs(t[i + 1], t[i + 3]);
  }
  // u[4 * i + j], 128-bit lane q: column 4 * q + j of rows 4 * i ... 4 * i + 3.
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    const __m512 a = _mm512_maskz_shuffle_f32x4(0xffff, u[j], u[4 + j], 0x88);
    const __m512 b = _mm512_maskz_shuffle_f32x4(0xffff, u[j], u[4 + j], 0xdd);
    const __m512 c = _mm512_maskz_shuffle_f32x4(0xffff, u[8 + j], u[12 + j], 0x88);
    const __m512 d = _mm512_maskz_shuffle_f32x4(0xffff, u[8 + j], u[12 + j], 0xdd);
    r[j].v = _mm512_maskz_shuffle_f32x4(0xffff, a, c, 0x88);
    r[8 + j].v = _mm512_maskz_shuffle_f32x4(0xffff, a, c, 0xdd);
    r[4 + j].v = _mm512_maskz_shuffle_f32x4(0xffff, b, d, 0x88);
    r[12 + j].v = _mm512_maskz_shuffle_f32x4(0xffff, b, d, 0xdd);
  }
}

// Loads put rows i, 4 + i, 8 + i and 12 + i in the 128-bit lanes, which saves half of the shuffles.
SN_INLINE void load_columns(const float* p, ptrdiff_t stride, Vf (&x)[lanes]) {
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    __m512 t[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const float* row = p + i * stride + 4 * j;
      t[i] = _mm512_zextps128_ps512(_mm_loadu_ps(row));
      t[i] = _mm512_maskz_insertf32x4(0xffff, t[i], _mm_loadu_ps(row + 4 * stride), 1);
      t[i] = _mm512_maskz_insertf32x4(0xffff, t[i], _mm_loadu_ps(row + 8 * stride), 2);
      t[i] = _mm512_maskz_insertf32x4(0xffff, t[i], _mm_loadu_ps(row + 12 * stride), 3);
    }
    const __m512 a = _mm512_maskz_unpacklo_ps(0xffff, t[0], t[1]), b = _mm512_maskz_unpackhi_ps(0xffff, t[0], t[1]);
    const __m512 c = _mm512_maskz_unpacklo_ps(0xffff, t[2], t[3]), d = _mm512_maskz_unpackhi_ps(0xffff, t[2], t[3]);
    x[4 * j].v = low_pairs(a, c);
    x[4 * j + 1].v = high_pairs(a, c);
    x[4 * j + 2].v = low_pairs(b, d);
    x[4 * j + 3].v = high_pairs(b, d);
  }
}

}  // namespace softneuro::SN_ISA
