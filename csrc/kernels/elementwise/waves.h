// Sine and cosine over Vf.
#pragma once

#include "simd/simd.h"

namespace softneuro::SN_ISA {

// One where a whole number is odd, else zero.
SN_INLINE Vf is_odd(Vf whole) {
  const Vf half = whole * set(0.5f);
  return select(eq(half, SN_ISA::round(half)), zero(), set(1.0f));
}

// Less the nearest multiple of a quarter turn, which three terms have to some 50 bits. The products with the first two
// are exact below 8192 quarter turns, with and without fused operations.
SN_INLINE Vf less_turns(Vf x, Vf turns) {
  x = x - turns * set(1.5703125f);
  x = x - turns * set(4.837512969970703125e-4f);
  return x - turns * set(7.549789948768648e-8f);
}

// These are sines of numbers below `most_wave`, cosines if `ahead` is 1. The polynomials, of up to an eighth of a turn,
// are those of Cephes.
template <int ahead>
SN_INLINE Vf short_wave(Vf x) {
  const Vf turns = SN_ISA::round(x * set(0.636619772367581343f)), rest = less_turns(x, turns), r2 = rest * rest;
  const Vf s =
      fma(fma(fma(set(-1.9515295891e-4f), r2, set(8.3321608736e-3f)), r2, set(-1.6666654611e-1f)), r2 * rest, rest);
  const Vf c =
      fma(fma(fma(set(2.443315711809948e-5f), r2, set(-1.388731625493765e-3f)), r2, set(4.166664568298827e-2f)),
          r2 * r2, fma(r2, set(-0.5f), set(1.0f)));
  const Vf quarter = turns + set(static_cast<float>(ahead)), odd = is_odd(quarter);
  const Vf value = select(eq(odd, zero()), s, c), negative = is_odd((quarter - odd) * set(0.5f));
  return select(eq(negative, zero()), value, zero() - value);
}

inline constexpr float most_wave = 8192;

// One element at a time where any is large.
template <int ahead>
SN_INLINE Vf wave(Vf x) {
  if (!any(lt(set(most_wave), abs(x)))) {
    const Vf value = short_wave<ahead>(x);
    return ahead == 1 ? value : select(eq(x, zero()), x, value);  // sin(-0) is -0
  }
  float values[lanes];
  store(values, x);
  for (int i = 0; i < lanes; ++i) values[i] = ahead == 1 ? __builtin_cosf(values[i]) : __builtin_sinf(values[i]);
  return load(values);
}

}  // namespace softneuro::SN_ISA
