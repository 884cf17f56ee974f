// dynamic_rows over Vf. Contract: dynamic_rows.h.
#pragma once

#include "kernels/dynamic_rows/dynamic_rows.h"
#include "kernels/unroll.h"
#include "simd/elements.h"

namespace softneuro::SN_ISA {
namespace dynamic_rows {

[[gnu::flatten]] inline FloatRange range(const float* src, int64_t count) {
  constexpr int together = 4;  // an operation takes as many cycles
  Vf least[together], most[together];
  Vi largest[together];  // by the bits: infinity is above what is finite, NaN above it
  unroll<together>([&](auto k) { least[k] = most[k] = zero(), largest[k] = Vi{}; });
  const auto add = [&](auto k, Vf x) {
    const Vi size = bits(x) & INT32_MAX;
    least[k] = at_most(x, least[k]);
    most[k] = at_least(x, most[k]);
    largest[k] = size > largest[k] ? size : largest[k];
  };
  int64_t i = 0;
  for (; i + together * lanes <= count; i += together * lanes) {
    unroll<together>([&](auto k) { add(k, load(src + i + k * lanes)); });
  }
  for (; i + lanes <= count; i += lanes) add(Index<0>{}, load(src + i));
  if (i < count) add(Index<0>{}, load_n(src + i, static_cast<int>(count - i)));
  unroll<together>([&](auto k) {
    least[0] = min(least[0], least[k]);
    most[0] = max(most[0], most[k]);
    largest[0] = largest[k] > largest[0] ? largest[k] : largest[0];
  });
  int32_t lane[lanes], bound = 0;
  store(lane, largest[0]);
  for (const int32_t size : lane) bound = size > bound ? size : bound;
  constexpr int32_t infinity = 0x7f800000;
  if (bound >= infinity) return {__builtin_nanf(""), __builtin_nanf("")};
  return {reduce_min(least[0]), reduce_max(most[0])};
}

inline int32_t sum(const uint8_t* src, int64_t count) {
  int32_t total = 0;
  for (int64_t i = 0; i < count; ++i) total += src[i];
  return total;
}

template <bool has_zero, bool has_zeros>
SN_INLINE void finish(const DynamicRow& r, float* dst, int64_t count) {
  const Vf row = set(r.row);
  const Vi zero = Vi{} + r.zero, total = Vi{} + r.total;
  const auto value = [&](int64_t i) {
    Vi sum = load(r.sums + i);
    if constexpr (has_zero) sum -= zero * load(r.columns + i);
    if constexpr (has_zeros) sum -= total * load(r.zeros + i);
    return fused(to_float(sum), row * load(r.scale + i), load(r.bias + i));
  };
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) store(dst + i, value(i));
  if (i < count) store_n(dst + i, value(i), static_cast<int>(count - i));
}

inline void finish(const DynamicRow& r, float* dst, int64_t count) {
  if (r.zeros != nullptr) return finish<true, true>(r, dst, count);
  if (r.zero != 0) return finish<true, false>(r, dst, count);
  finish<false, false>(r, dst, count);
}

inline void fold(const DynamicRow& r, const int32_t* start, int32_t* folded_start, float* folded_scale, int64_t count) {
  const Vf row = set(r.row);
  const Vi zero = Vi{} + r.zero;
  for (int64_t i = 0; i < count; i += lanes) {
    store(folded_start + i, load(start + i) - zero * load(r.columns + i));
    store(folded_scale + i, row * load(r.scale + i));
  }
}

}  // namespace dynamic_rows
}  // namespace softneuro::SN_ISA

namespace softneuro {

SN_KERNEL_TABLE(DynamicRowsKernels, dynamic_rows) = {
    .range = SN_ISA::dynamic_rows::range,
    .sum = SN_ISA::dynamic_rows::sum,
    .finish = SN_ISA::dynamic_rows::finish,
    .fold = SN_ISA::dynamic_rows::fold,
};

}  // namespace softneuro
