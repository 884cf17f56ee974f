// One vector type, Vf, for every instruction-set level: what generic.h templates are written on.
//
// Included only by files compiled for one level, with SN_ISA defined as its name (scalar, avx2, avx512, neon,
// avxvnni, avx512vnni, amx).
// Everything is always inlined and in namespace softneuro::SN_ISA, so that no two levels share a function.
//
// Each level header defines
//   Vf, Vm          `lanes` floats; one truth value per lane
//   lanes           16, 8 or 4: the channel block of the level's blocked layout
//   registers       vector registers that accumulators and operands may take together
//   load, store     unaligned is allowed; load_n, store_n touch the first n lanes only (0 <= n <= lanes), the other
//                   lanes are read as zero; stream stores past the caches and wants p aligned to the vector
//   set, zero, + - * /, fma (a * b + c), fnma (c - a * b), abs, sqrt, floor, round (half to even), copysign
//   at_least, at_most (x, bound): max and min as one instruction; a NaN in x survives, one in the bound does not
//   lt, le, eq (ordered), is_nan, select (m ? a : b), any
//   ldexp2 (x * 2^n, n integral, |n| <= 300), frexp2 (finite x > 0: x = m * 2^e, m in [1, 2))
//   transpose       lanes x lanes in place; load_columns (p, stride, x): x[i] is column i of lanes rows at p
#pragma once

#include <cstddef>
#include <cstdint>

#ifndef SN_ISA
#error "simd.h is for files compiled for one instruction-set level: SN_ISA must name it"
#endif

#define SN_INLINE inline __attribute__((always_inline))
#define SN_RESTRICT __restrict__

#define SN_LEVEL_scalar 0
#define SN_LEVEL_avx2 1
#define SN_LEVEL_avx512 2
#define SN_LEVEL_neon 3
#define SN_LEVEL_avxvnni 4
#define SN_LEVEL_avx512vnni 5
#define SN_LEVEL_amx 6
#define SN_LEVEL_OF_(isa) SN_LEVEL_##isa
#define SN_LEVEL_OF(isa) SN_LEVEL_OF_(isa)
#define SN_LEVEL SN_LEVEL_OF(SN_ISA)
// The level whose vectors it has.
#if SN_LEVEL == SN_LEVEL_avx512vnni || SN_LEVEL == SN_LEVEL_amx
#define SN_VECTORS SN_LEVEL_avx512
#elif SN_LEVEL == SN_LEVEL_avxvnni
#define SN_VECTORS SN_LEVEL_avx2
#else
#define SN_VECTORS SN_LEVEL
#endif

#define SN_CAT_(a, b) a##b
#define SN_CAT(a, b) SN_CAT_(a, b)
// x_avx512 where SN_ISA is avx512.
#define SN_ISA_NAME(x) SN_CAT(SN_CAT(x, _), SN_ISA)
// Followed by `= {...};`: the table of this level's kernels, in namespace softneuro, for kernels/levels.h.
#define SN_KERNEL_TABLE(Table, name)    \
  extern const Table SN_ISA_NAME(name); \
  const Table SN_ISA_NAME(name)

#if SN_VECTORS == SN_LEVEL_avx512
#include "simd/simd_avx512.h"
#elif SN_VECTORS == SN_LEVEL_avx2
#include "simd/simd_avx2.h"
#elif SN_VECTORS == SN_LEVEL_neon
#include "simd/simd_neon.h"
#else
#include "simd/simd_scalar.h"
#endif

namespace softneuro::SN_ISA {

// The numbers of the lanes as template arguments.
template <int... i>
struct LaneList {};
template <int n, int... i>
struct CountLanes : CountLanes<n - 1, n - 1, i...> {};
template <int... i>
struct CountLanes<0, i...> {
  using List = LaneList<i...>;
};
using AllLanes = CountLanes<lanes>::List;

// NaN in either operand gives NaN, as torch's maximum, minimum and max pooling have it.
SN_INLINE Vf max(Vf a, Vf b) { return select(is_nan(a), a, at_least(b, a)); }
SN_INLINE Vf min(Vf a, Vf b) { return select(is_nan(a), a, at_most(b, a)); }
SN_INLINE Vf clamp(Vf x, Vf lo, Vf hi) { return at_most(at_least(x, lo), hi); }
SN_INLINE Vf operator-(Vf x) { return zero() - x; }

// fma, rounded once at every level: for results that are to have the same bits at all of them.
SN_INLINE Vf fused(Vf a, Vf b, Vf c) {
#if SN_LEVEL == SN_LEVEL_scalar
  for (int i = 0; i < lanes; ++i) c.v[i] = __builtin_fmaf(a.v[i], b.v[i], c.v[i]);
  return c;
#else
  return fma(a, b, c);
#endif
}

SN_INLINE void prefetch(const float* p) { __builtin_prefetch(p, 0, 3); }
SN_INLINE void prefetch_l2(const float* p) { __builtin_prefetch(p, 0, 2); }

// Every second lane of a and then of b, from the first on.
template <int... i>
SN_INLINE Vf even_lanes(Vf a, Vf b, LaneList<i...>) {
  return {__builtin_shufflevector(a.v, b.v, (2 * i)...)};
}
SN_INLINE Vf even_lanes(Vf a, Vf b) { return even_lanes(a, b, AllLanes()); }

template <class Op>
SN_INLINE float reduce(Vf x, Op op) {
  float lane[lanes];
  store(lane, x);
#pragma GCC unroll 4
  for (int width = lanes / 2; width > 0; width /= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < width; ++i) lane[i] = op(lane[i], lane[i + width]);
  }
  return lane[0];
}
SN_INLINE float reduce_add(Vf x) {
  return reduce(x, [](float a, float b) { return a + b; });
}
// A NaN lane gives NaN.
SN_INLINE float reduce_max(Vf x) {
  return reduce(x, [](float a, float b) { return a != a || a > b ? a : b; });
}
SN_INLINE float reduce_min(Vf x) {
  return reduce(x, [](float a, float b) { return a != a || a < b ? a : b; });
}

}  // namespace softneuro::SN_ISA
