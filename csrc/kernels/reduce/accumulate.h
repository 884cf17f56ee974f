// Accumulators of the reductions over Vf.
#pragma once

#include <cstdint>

#include "kernels/store/policy.h"

namespace softneuro::SN_ISA {

// A running sum whose rounding errors are kept and subtracted from what comes next (Kahan).
struct CompensatedSum {
  Vf total = zero(), lost = zero();

  SN_INLINE void add(Vf x) {
    const Vf y = x - lost, next = total + y;
    // An infinity loses nothing: its difference would be NaN.
    lost = select(lt(abs(next), set(__builtin_inff())), (next - total) - y, zero());
    total = next;
  }
};

// Vectors that are added plainly before their sum is added with compensation.
constexpr int64_t plain_vectors = 128;

// Sum over i < count of f(x, lanes in use) with x the values of src[i ...]; unused lanes of f's result must be zero, as
// those of x are if elements are numbers.
template <class T, class F>
SN_INLINE float sum_row(const T* src, int64_t count, const F& f, const Reading<T>& reading = {}) {
  CompensatedSum sum;
  int64_t i = 0;
  while (i + lanes <= count) {
    const int64_t vectors = (count - i) / lanes, block = vectors < plain_vectors ? vectors : plain_vectors;
    Vf part[4] = {zero(), zero(), zero(), zero()};
    int64_t k = 0;
    for (; k + 4 <= block; k += 4) {
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) part[j] = part[j] + f(reading.value(src + i + (k + j) * lanes), lanes);
    }
    for (; k < block; ++k) part[0] = part[0] + f(reading.value(src + i + k * lanes), lanes);
    sum.add((part[0] + part[1]) + (part[2] + part[3]));
    i += block * lanes;
  }
  if (i < count) {
    const int rest = static_cast<int>(count - i);
    sum.add(f(reading.value(src + i, rest), rest));
  }
  return reduce_add(sum.total);
}

// The first n lanes of x, the others from `rest`.
SN_INLINE Vf first_or(Vf x, int n, Vf rest) {
  float lane[lanes];
  store(lane, rest);
  store_n(lane, x, n);
  return load(lane);
}

// The greatest of a row, or the least; NaN if any is.
template <bool greatest>
SN_INLINE float extreme_row(const float* src, int64_t count) {
  const auto further = [](Vf a, Vf b) { return greatest ? max(a, b) : min(a, b); };
  const Vf start = set(greatest ? -__builtin_inff() : __builtin_inff());
  Vf found[4] = {start, start, start, start};
  int64_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) found[j] = further(found[j], load(src + i + j * lanes));
  }
  for (; i + lanes <= count; i += lanes) found[0] = further(found[0], load(src + i));
  if (i < count) {
    const int rest = static_cast<int>(count - i);
    found[1] = further(found[1], first_or(load_n(src + i, rest), rest, start));
  }
  const Vf all = further(further(found[0], found[1]), further(found[2], found[3]));
  return greatest ? reduce_max(all) : reduce_min(all);
}

SN_INLINE float max_row(const float* src, int64_t count) { return extreme_row<true>(src, count); }

}  // namespace softneuro::SN_ISA
