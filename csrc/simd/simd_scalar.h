// Any CPU: 4 lanes as the compiler's own vectors (SSE2 on x86-64, NEON on AArch64). See simd.h.
#pragma once

namespace softneuro::SN_ISA {

constexpr int lanes = 4;
constexpr int registers = 16;

typedef float Float4 __attribute__((vector_size(16)));
typedef int32_t Int4 __attribute__((vector_size(16)));

struct Vf {
  Float4 v;
};
struct Vm {
  Int4 m;  // all bits of a lane, or none
};

SN_INLINE Vf load(const float* p) {
  Vf x;
  __builtin_memcpy(&x.v, p, sizeof x.v);
  return x;
}
SN_INLINE void store(float* p, Vf x) { __builtin_memcpy(p, &x.v, sizeof x.v); }
SN_INLINE void stream(float* p, Vf x) { store(p, x); }
SN_INLINE Vf load_n(const float* p, int n) {
  if (n == lanes) return load(p);
  return {Float4{n > 0 ? p[0] : 0, n > 1 ? p[1] : 0, n > 2 ? p[2] : 0, 0}};
}
SN_INLINE void store_n(float* p, Vf x, int n) {
  for (int i = 0; i < n; ++i) p[i] = x.v[i];
}

SN_INLINE Vf set(float x) { return {Float4{x, x, x, x}}; }
SN_INLINE Vf zero() { return {Float4{}}; }
SN_INLINE Vf operator+(Vf a, Vf b) { return {a.v + b.v}; }
SN_INLINE Vf operator-(Vf a, Vf b) { return {a.v - b.v}; }
SN_INLINE Vf operator*(Vf a, Vf b) { return {a.v * b.v}; }
SN_INLINE Vf operator/(Vf a, Vf b) { return {a.v / b.v}; }
SN_INLINE Vf fma(Vf a, Vf b, Vf c) { return {a.v * b.v + c.v}; }
SN_INLINE Vf fnma(Vf a, Vf b, Vf c) { return {c.v - a.v * b.v}; }

SN_INLINE Vm lt(Vf a, Vf b) { return {a.v < b.v}; }
SN_INLINE Vm le(Vf a, Vf b) { return {a.v <= b.v}; }
SN_INLINE Vm eq(Vf a, Vf b) { return {a.v == b.v}; }
SN_INLINE Vm is_nan(Vf a) { return {a.v != a.v}; }
SN_INLINE Vf select(Vm m, Vf a, Vf b) { return {m.m ? a.v : b.v}; }
SN_INLINE bool any(Vm m) { return (m.m[0] | m.m[1] | m.m[2] | m.m[3]) != 0; }

SN_INLINE Vf copysign(Vf magnitude, Vf sign) {
  const Int4 mask = Int4{} + INT32_MIN;
  return {(Float4)(((Int4)magnitude.v & ~mask) | ((Int4)sign.v & mask))};
}
SN_INLINE Vf abs(Vf x) { return {(Float4)((Int4)x.v & INT32_MAX)}; }
SN_INLINE Vf sqrt(Vf x) {
  return {Float4{__builtin_sqrtf(x.v[0]), __builtin_sqrtf(x.v[1]), __builtin_sqrtf(x.v[2]), __builtin_sqrtf(x.v[3])}};
}
SN_INLINE Vf at_least(Vf x, Vf lo) { return {lo.v > x.v ? lo.v : x.v}; }
SN_INLINE Vf at_most(Vf x, Vf hi) { return {hi.v < x.v ? hi.v : x.v}; }
// Adding and subtracting 2^23 rounds away the fraction of smaller numbers; larger ones have none.
SN_INLINE Vf round(Vf x) {
  const Vf big = copysign(set(0x1p23f), x);
  Vf shifted = x + big;
  __asm__("" : "+x"(shifted.v));  // keeps the compiler from cancelling the pair
  return select(lt(abs(x), set(0x1p23f)), copysign(shifted - big, x), x);
}
SN_INLINE Vf floor(Vf x) {
  const Vf r = round(x);
  return select(lt(x, r), r - set(1.0f), r);
}

// Three steps, so that each power of two is a normal number.
SN_INLINE Vf ldexp2(Vf x, Vf n) {
  const Int4 i = __builtin_convertvector(n.v, Int4);
  const Int4 third = (i * 21846) >> 16;
  const Float4 p = (Float4)((third + 127) << 23);
  const Float4 q = (Float4)((i - third - third + 127) << 23);
  return {x.v * p * p * q};
}
SN_INLINE void frexp2(Vf x, Vf& m, Vf& e) {
  // Subnormal numbers are scaled up first.
  const Int4 tiny = x.v < set(0x1p-126f).v;
  const Int4 bits = (Int4)(tiny ? x.v * 0x1p24f : x.v);
  e.v = __builtin_convertvector((bits >> 23) - 127 - (tiny & 24), Float4);
  m.v = (Float4)((bits & 0x007fffff) | 0x3f800000);
}

SN_INLINE void transpose(Vf (&r)[lanes]) {
  const Float4 a = r[0].v, b = r[1].v, c = r[2].v, d = r[3].v;
  const Float4 ab_lo = __builtin_shuffle(a, b, Int4{0, 4, 1, 5}), ab_hi = __builtin_shuffle(a, b, Int4{2, 6, 3, 7});
  const Float4 cd_lo = __builtin_shuffle(c, d, Int4{0, 4, 1, 5}), cd_hi = __builtin_shuffle(c, d, Int4{2, 6, 3, 7});
  r[0].v = __builtin_shuffle(ab_lo, cd_lo, Int4{0, 1, 4, 5});
  r[1].v = __builtin_shuffle(ab_lo, cd_lo, Int4{2, 3, 6, 7});
  r[2].v = __builtin_shuffle(ab_hi, cd_hi, Int4{0, 1, 4, 5});
  r[3].v = __builtin_shuffle(ab_hi, cd_hi, Int4{2, 3, 6, 7});
}

SN_INLINE void load_columns(const float* p, ptrdiff_t stride, Vf (&x)[lanes]) {
  for (int i = 0; i < lanes; ++i) x[i] = load(p + i * stride);
  transpose(x);
}

}  // namespace softneuro::SN_ISA
