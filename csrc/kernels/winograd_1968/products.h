// A tile's products with a block of input channels. See pairs.h.
#pragma once

#include "kernels/unroll.h"
#include "kernels/winograd_1968/pairs.h"
#include "simd/half.h"
#include "simd/simd.h"

namespace softneuro::SN_ISA {
namespace winograd_1968 {

constexpr int pairs = lanes / 2;  // of a block
constexpr bool adds_first(int pair) { return winograd_1968_adds(lanes, pair); }
// Pairs whose weights are in registers together.
constexpr int group = pairs == 8 ? 3 : 2;

// What products are made of: of whole vectors, or of their lower halves alone.
template <bool narrow>
SN_INLINE Vf add(const float* x, Vf w) {
  return narrow ? add_half(x, w) : set(*x) + w;
}
template <bool narrow>
SN_INLINE Vf multiply_add(const float* x, Vf w, Vf sum) {
  return narrow ? fma_half(x, w, sum) : fma(set(*x), w, sum);
}

// Pairs [first, first + count) of a block: a are its pixels, w its weights.
template <int first, int count, bool narrow, int tile>
SN_INLINE void multiply_pairs(Vf (&sum)[tile], const float* a, const float* w) {
  Vf v[2 * count];
  unroll<2 * count>([&](auto i) { v[i] = load(w + (2 * first + i) * lanes); });
  unroll<tile>([&](auto p) {
    const float* const x = a + p * lanes + 2 * first;
    Vf one[count], other[count];
    unroll<count>([&](auto i) {
      if constexpr (adds_first(first + i)) {
        one[i] = add<narrow>(x + 2 * i, v[2 * i + 1]);
        other[i] = add<narrow>(x + 2 * i + 1, v[2 * i]);
      }
    });
    unroll<count>([&](auto i) {
      if constexpr (!adds_first(first + i)) {
        sum[p] = multiply_add<narrow>(x + 2 * i, v[2 * i], sum[p]);
        sum[p] = multiply_add<narrow>(x + 2 * i + 1, v[2 * i + 1], sum[p]);
      }
    });
    unroll<count>([&](auto i) {
      if constexpr (adds_first(first + i)) {
        sum[p] = narrow ? fma_half(one[i], other[i], sum[p]) : fma(one[i], other[i], sum[p]);
      }
    });
  });
}

template <int tile, bool narrow = false>
SN_INLINE void multiply_block(Vf (&sum)[tile], const float* a, const float* w) {
  if constexpr (pairs == 8) {
    multiply_pairs<0, group, narrow, tile>(sum, a, w);
    multiply_pairs<group, pairs - 2 * group, narrow, tile>(sum, a, w);
    multiply_pairs<pairs - group, group, narrow, tile>(sum, a, w);
  } else {
    unroll<pairs / group>([&](auto i) { multiply_pairs<i * group, group, narrow, tile>(sum, a, w); });
  }
}

// The first half of a block alone.
constexpr bool has_half_block = pairs % 4 == 0;
template <int tile, bool narrow = false>
SN_INLINE void multiply_half_block(Vf (&sum)[tile], const float* a, const float* w) {
  if constexpr (has_half_block) multiply_pairs<0, 2, narrow, tile>(sum, a, w);
  if constexpr (pairs == 8) multiply_pairs<2, 2, narrow, tile>(sum, a, w);
}

}  // namespace winograd_1968
}  // namespace softneuro::SN_ISA
