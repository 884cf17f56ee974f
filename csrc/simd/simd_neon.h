// AArch64's Advanced SIMD: 4 lanes. See simd.h.
#pragma once

#include <arm_neon.h>

namespace softneuro::SN_ISA {

constexpr int lanes = 4;
constexpr int registers = 32;

struct Vf {
  float32x4_t v;
};
struct Vm {
  uint32x4_t m;  // all bits of a lane, or none
};

SN_INLINE Vf load(const float* p) { return {vld1q_f32(p)}; }
SN_INLINE void store(float* p, Vf x) { vst1q_f32(p, x.v); }
SN_INLINE void stream(float* p, Vf x) { store(p, x); }
SN_INLINE Vf load_n(const float* p, int n) {
  if (n == lanes) return load(p);
  const float lane[4] = {n > 0 ? p[0] : 0, n > 1 ? p[1] : 0, n > 2 ? p[2] : 0, 0};
  return load(lane);
}
SN_INLINE void store_n(float* p, Vf x, int n) {
  for (int i = 0; i < n; ++i) p[i] = x.v[i];
}

SN_INLINE Vf set(float x) { return {vdupq_n_f32(x)}; }
SN_INLINE Vf zero() { return {vdupq_n_f32(0)}; }
SN_INLINE Vf operator+(Vf a, Vf b) { return {vaddq_f32(a.v, b.v)}; }
SN_INLINE Vf operator-(Vf a, Vf b) { return {vsubq_f32(a.v, b.v)}; }
SN_INLINE Vf operator*(Vf a, Vf b) { return {vmulq_f32(a.v, b.v)}; }
SN_INLINE Vf operator/(Vf a, Vf b) { return {vdivq_f32(a.v, b.v)}; }
SN_INLINE Vf fma(Vf a, Vf b, Vf c) { return {vfmaq_f32(c.v, a.v, b.v)}; }
SN_INLINE Vf fnma(Vf a, Vf b, Vf c) { return {vfmsq_f32(c.v, a.v, b.v)}; }
SN_INLINE Vf abs(Vf x) { return {vabsq_f32(x.v)}; }
SN_INLINE Vf sqrt(Vf x) { return {vsqrtq_f32(x.v)}; }
SN_INLINE Vf floor(Vf x) { return {vrndmq_f32(x.v)}; }
SN_INLINE Vf round(Vf x) { return {vrndnq_f32(x.v)}; }
SN_INLINE Vf copysign(Vf magnitude, Vf sign) { return {vbslq_f32(vdupq_n_u32(0x80000000U), sign.v, magnitude.v)}; }

SN_INLINE Vm lt(Vf a, Vf b) { return {vcltq_f32(a.v, b.v)}; }
SN_INLINE Vm le(Vf a, Vf b) { return {vcleq_f32(a.v, b.v)}; }
SN_INLINE Vm eq(Vf a, Vf b) { return {vceqq_f32(a.v, b.v)}; }
SN_INLINE Vm is_nan(Vf a) { return {vmvnq_u32(vceqq_f32(a.v, a.v))}; }
SN_INLINE Vf select(Vm m, Vf a, Vf b) { return {vbslq_f32(m.m, a.v, b.v)}; }
SN_INLINE bool any(Vm m) { return vmaxvq_u32(m.m) != 0; }

// The "number" forms of max and min would drop a NaN in x, the plain ones keep one in the bound: neither is asked for.
SN_INLINE Vf at_least(Vf x, Vf lo) { return select(lt(x, lo), lo, x); }
SN_INLINE Vf at_most(Vf x, Vf hi) { return select(lt(hi, x), hi, x); }

// Three steps, so that each power of two is a normal number.
SN_INLINE Vf ldexp2(Vf x, Vf n) {
  const int32x4_t i = vcvtnq_s32_f32(n.v);
  const int32x4_t third = vshrq_n_s32(vmulq_n_s32(i, 21846), 16);
  const int32x4_t rest = vsubq_s32(i, vaddq_s32(third, third)), bias = vdupq_n_s32(127);
  const float32x4_t p = vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(third, bias), 23));
  const float32x4_t q = vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(rest, bias), 23));
  return {vmulq_f32(vmulq_f32(vmulq_f32(x.v, p), p), q)};
}
SN_INLINE void frexp2(Vf x, Vf& m, Vf& e) {
  // Subnormal numbers are scaled up first.
  const Vm tiny = lt(x, set(0x1p-126f));
  const int32x4_t bits = vreinterpretq_s32_f32(select(tiny, x * set(0x1p24f), x).v);
  const int32x4_t scaled = vandq_s32(vreinterpretq_s32_u32(tiny.m), vdupq_n_s32(24));
  e.v = vcvtq_f32_s32(vsubq_s32(vsubq_s32(vshrq_n_s32(bits, 23), vdupq_n_s32(127)), scaled));
  const int32x4_t fraction = vandq_s32(bits, vdupq_n_s32(0x007fffff));
  m.v = vreinterpretq_f32_s32(vorrq_s32(fraction, vdupq_n_s32(0x3f800000)));
}

SN_INLINE void transpose(Vf (&r)[lanes]) {
  const float32x4x2_t ab = vtrnq_f32(r[0].v, r[1].v), cd = vtrnq_f32(r[2].v, r[3].v);
  r[0].v = vcombine_f32(vget_low_f32(ab.val[0]), vget_low_f32(cd.val[0]));
  r[1].v = vcombine_f32(vget_low_f32(ab.val[1]), vget_low_f32(cd.val[1]));
  r[2].v = vcombine_f32(vget_high_f32(ab.val[0]), vget_high_f32(cd.val[0]));
  r[3].v = vcombine_f32(vget_high_f32(ab.val[1]), vget_high_f32(cd.val[1]));
}

SN_INLINE void load_columns(const float* p, ptrdiff_t stride, Vf (&x)[lanes]) {
  for (int i = 0; i < lanes; ++i) x[i] = load(p + i * stride);
  transpose(x);
}

}  // namespace softneuro::SN_ISA
