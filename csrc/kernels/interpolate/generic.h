// The resampling kernels over Vf, of channels side by side for any type of elements. Contract: interpolate.h.
#pragma once

#include "base/lines.h"
#include "kernels/interpolate/interpolate.h"
#include "kernels/store/visit.h"
#include "simd/hold.h"

namespace softneuro::SN_ISA {

// How elements of T are read and written, `count` at most.
template <class T>
struct Elements {
  Reading<T> reading;
  Writing<T> writing;
  ClampBounds bounds;

  SN_INLINE explicit Elements(const InterpolateRow& p) : reading(p.from), writing(p.to), bounds(writing.bounds({})) {}
  SN_INLINE Vf get(const T* p, int count) const { return count == lanes ? reading.value(p) : reading.value(p, count); }
  SN_INLINE void put(T* p, Vf value, int count) const {
    Vf x = writing.steps(value);
    if constexpr (is_quantized<T>) x = clamp(x, set(bounds.lo), set(bounds.hi));
    count == lanes ? writing.put(p, x) : writing.put(p, x, count);
  }
};

template <class T>
void interpolate_lanes_of(const InterpolateRow& p) {
  const Elements<T> elements(p);
  const Vf above_share = set(p.above_share), below_share = set(p.below_share);
  for (int64_t x = 0; x < p.outputs; ++x) {
    const int64_t first = p.first[x] * p.channels, second = p.second[x] * p.channels;
    const Vf first_share = set(p.first_share[x]), second_share = set(p.second_share[x]);
    T* dst = static_cast<T*>(p.dst) + x * p.channels;
    for (int64_t c = 0; c < p.channels; c += lanes) {
      const int count = c + lanes <= p.channels ? lanes : static_cast<int>(p.channels - c);
      const auto at = [&](const void* row, int64_t column) {
        return elements.get(static_cast<const T*>(row) + column + c, count);
      };
      const Vf left = fma(at(p.above, first), above_share, at(p.below, first) * below_share);
      const Vf right = fma(at(p.above, second), above_share, at(p.below, second) * below_share);
      elements.put(dst + c, fma(left, first_share, right * second_share), count);
    }
  }
}

inline void interpolate_line(const InterpolateRow& p) {
  const auto *above_row = static_cast<const float*>(p.above), *below_row = static_cast<const float*>(p.below);
  const Vf above_share = set(p.above_share), below_share = set(p.below_share);
  for (int64_t x = 0; x < p.width; x += lanes) {
    const int count = x + lanes <= p.width ? lanes : static_cast<int>(p.width - x);
    const Vf above = count == lanes ? load(above_row + x) : load_n(above_row + x, count);
    const Vf below = count == lanes ? load(below_row + x) : load_n(below_row + x, count);
    store_n(p.scratch + x, fma(above, above_share, below * below_share), count);
  }
  // A plain loop, which the compiler turns into gathers where the level has them.
  const float* SN_RESTRICT line = p.scratch;
  float* SN_RESTRICT dst = static_cast<float*>(p.dst);
  for (int64_t x = 0; x < p.outputs; ++x) {
    dst[x] = line[p.first[x]] * p.first_share[x] + line[p.second[x]] * p.second_share[x];
  }
}

// A product that compilers do not make part of an FMA, which would round once where the host rounds twice.
SN_INLINE Vf rounded_product(Vf a, Vf b) { return hold(a * b); }

template <class T>
void interpolate_lanes_by_shares_of(const InterpolateRow& p) {
  const Elements<T> elements(p);
  const auto *above = static_cast<const T*>(p.above), *below = static_cast<const T*>(p.below);
  for (int64_t x = 0; x < p.outputs; ++x) {
    const int64_t first = p.first[x] * p.channels, second = p.second[x] * p.channels;
    const Vf shares[4] = {set(p.first_share[x] * p.above_share), set(p.second_share[x] * p.above_share),
                          set(p.first_share[x] * p.below_share), set(p.second_share[x] * p.below_share)};
    const T* const from[4] = {above + first, above + second, below + first, below + second};
    T* dst = static_cast<T*>(p.dst) + x * p.channels;
    for (int64_t c = 0; c < p.channels; c += lanes) {
      const int count = c + lanes <= p.channels ? lanes : static_cast<int>(p.channels - c);
      Vf mixed = rounded_product(shares[0], elements.get(from[0] + c, count));
      for (int i = 1; i < 4; ++i) mixed = mixed + rounded_product(shares[i], elements.get(from[i] + c, count));
      elements.put(dst + c, mixed, count);
    }
  }
}

inline void interpolate_line_by_shares(const InterpolateRow& p) {
  const auto *above = static_cast<const float*>(p.above), *below = static_cast<const float*>(p.below);
  const Vf above_share = set(p.above_share), below_share = set(p.below_share);
  for (int64_t x = 0; x < p.outputs; x += lanes) {
    const int count = x + lanes <= p.outputs ? lanes : static_cast<int>(p.outputs - x);
    alignas(64) float near[4][lanes] = {};
    for (int i = 0; i < count; ++i) {
      near[0][i] = above[p.first[x + i]], near[1][i] = above[p.second[x + i]];
      near[2][i] = below[p.first[x + i]], near[3][i] = below[p.second[x + i]];
    }
    const Vf first_share = load_n(p.first_share + x, count), second_share = load_n(p.second_share + x, count);
    Vf mixed = rounded_product(first_share * above_share, load(near[0]));
    mixed = mixed + rounded_product(second_share * above_share, load(near[1]));
    mixed = mixed + rounded_product(first_share * below_share, load(near[2]));
    mixed = mixed + rounded_product(second_share * below_share, load(near[3]));
    store_n(static_cast<float*>(p.dst) + x, mixed, count);
  }
}

inline void interpolate_lanes(const InterpolateRow& p) {
  with_elements(p.from.type, [&]<class T>() { interpolate_lanes_of<T>(p); });
}
inline void interpolate_lanes_by_shares(const InterpolateRow& p) {
  with_elements(p.from.type, [&]<class T>() { interpolate_lanes_by_shares_of<T>(p); });
}

// Lines are of floats: others are made floats first.
template <InterpolateKernel line>
void interpolate_any_line(const InterpolateRow& p) {
  if (p.from.type == DType::float32) return line(p);
  InterpolateRow floats = p;
  const int64_t row = whole_lines(p.width);
  float *const above = p.scratch + row, *const below = above + row, *const dst = below + row;
  read_values(p.from, p.above, 0, p.width, above);
  read_values(p.from, p.below, 0, p.width, below);
  floats.above = above, floats.below = below, floats.dst = dst;
  line(floats);
  write_values(p.to, dst, p.dst, 0, p.outputs);
}

}  // namespace softneuro::SN_ISA

namespace softneuro {

SN_KERNEL_TABLE(InterpolateKernels, interpolate) = {
    .lanes = SN_ISA::interpolate_lanes,
    .line = SN_ISA::interpolate_any_line<SN_ISA::interpolate_line>,
    .lanes_by_shares = SN_ISA::interpolate_lanes_by_shares,
    .line_by_shares = SN_ISA::interpolate_any_line<SN_ISA::interpolate_line_by_shares>};

}  // namespace softneuro
