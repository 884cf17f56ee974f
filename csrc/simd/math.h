// exp, log, tanh, erf and relatives over Vf: errors of a few units in the last place (erf: 1e-7 absolute), with the
// limits of <cmath> at infinities, NaN and overflow. Polynomials are minimax fits by reweighted least squares.
#pragma once

#include "simd/simd.h"

namespace softneuro::SN_ISA {

template <class... Rest>
SN_INLINE Vf polynomial(Vf x, float c0, Rest... rest) {
  if constexpr (sizeof...(rest) == 0) {
    return set(c0);
  } else {
    return fma(polynomial(x, rest...), x, set(c0));
  }
}

// exp(x) = 2^n * (1 + p), p = exp(r) - 1 with |r| <= ln(2) / 2. Beyond +-104 every result has its limit.
SN_INLINE void exp_parts(Vf x, Vf& n, Vf& p) {
  x = clamp(x, set(-104.0f), set(104.0f));
  n = round(x * set(1.44269504f));
  Vf r = fnma(n, set(0.693359375f), x);
  r = fnma(n, set(-2.12194440e-4f), r);
  p = fma(r * r, polynomial(r, 0.5f, 0.16666667f, 0.041666355f, 0.0083332742f, 0.0013940973f, 0.00019913529f), r);
}
SN_INLINE Vf exp(Vf x) {
  Vf n, p;
  exp_parts(x, n, p);
  return ldexp2(p + set(1.0f), n);
}
// 2^x. Beyond +-160 every result has its limit.
SN_INLINE Vf exp2(Vf x) {
  x = clamp(x, set(-160.0f), set(160.0f));
  const Vf n = round(x);
  return ldexp2(
      polynomial(x - n, 1.0f, 0.69314718f, 0.24022646f, 0.055503286f, 0.0096184891f, 0.0013399931f, 0.00015345812f), n);
}
// Accurate around zero too.
SN_INLINE Vf expm1(Vf x) {
  Vf n, p;
  exp_parts(x, n, p);
  const Vf s = ldexp2(set(0.5f), n);  // half, as 2^128 is not finite
  const Vf half = fma(p, s, s - set(0.5f));
  return half + half;
}

SN_INLINE Vf log(Vf x) {
  Vf m, e;
  frexp2(x, m, e);
  const Vm upper = lt(set(1.41421356f), m);
  m = select(upper, m * set(0.5f), m);
  e = select(upper, e + set(1.0f), e);
  const Vf f = m - set(1.0f), f2 = f * f;
  const Vf p = polynomial(f, 0.33333310f, -0.24999987f, 0.20002227f, -0.16669250f, 0.14218657f, -0.12384371f,
                          0.11873010f, -0.11789685f, 0.069151491f);
  Vf y = fma(f * f2, p, e * set(-2.12194440e-4f));
  y = fnma(f2, set(0.5f), y);
  y = fma(e, set(0.693359375f), f + y);
  const Vf edge = select(eq(x, zero()), set(-__builtin_inff()), select(lt(x, zero()), set(__builtin_nanf("")), x));
  return select(lt(zero(), x), select(lt(x, set(__builtin_inff())), y, edge), edge);
}
// The rounding error of 1 + x is put back to first order.
SN_INLINE Vf log1p(Vf x) {
  const Vf u = x + set(1.0f);
  const Vf lost = (x - (u - set(1.0f))) / u;
  const Vm ordinary = lt(abs(log(u)), set(80.0f));
  return log(u) + select(ordinary, lost, zero());
}

SN_INLINE Vf tanh(Vf x) {
  const Vf a = at_most(abs(x), set(10.0f));
  const Vf t = expm1(a + a);
  return copysign(t / (t + set(2.0f)), x);
}
SN_INLINE Vf sigmoid(Vf x) { return set(1.0f) / (set(1.0f) + exp(-x)); }

SN_INLINE Vf erf(Vf x) {
  const Vf a = at_most(abs(x), set(4.1f)), z = a * a;
  const Vf inner = a * polynomial(z, 1.1283791f, -0.37612626f, 0.11283600f, -0.026854444f, 0.0051895352f,
                                  -0.00080208411f, 7.8891193e-05f);
  const Vf log_erfc = polynomial(a, -0.00029302252f, -1.1272795f, -0.63783979f, -0.10336219f, 0.021955859f,
                                 -0.0029760064f, 0.00018915920f);
  const Vf outer = set(1.0f) - exp(log_erfc);
  return copysign(select(lt(a, set(1.0f)), inner, outer), x);
}

}  // namespace softneuro::SN_ISA
