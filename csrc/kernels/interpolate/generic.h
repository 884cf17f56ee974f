#include "kernels/interpolate/interpolate.h"
#include "simd/hold.h"
#include "simd/simd.h"

namespace softneuro::SN_ISA {

inline void interpolate_lanes(const InterpolateRow& p) {
  const Vf above_share = set(p.above_share), below_share = set(p.below_share);
  for (int64_t x = 0; x < p.outputs; ++x) {
    const int64_t first = p.first[x] * p.channels, second = p.second[x] * p.channels;
    const Vf first_share = set(p.first_share[x]), second_share = set(p.second_share[x]);
    float* dst = p.dst + x * p.channels;
    for (int64_t c = 0; c < p.channels; c += lanes) {
      const bool whole = c + lanes <= p.channels;
      const int count = whole ? lanes : static_cast<int>(p.channels - c);
      const auto at = [&](const float* row, int64_t column) {
        return whole ? load(row + column + c) : load_n(row + column + c, count);
      };
      const Vf left = fma(at(p.above, first), above_share, at(p.below, first) * below_share);
      const Vf right = fma(at(p.above, second), above_share, at(p.below, second) * below_share);
      const Vf mixed = fma(left, first_share, right * second_share);
      if (whole) {
        store(dst + c, mixed);
      } else {
        store_n(dst + c, mixed, count);
      }
    }
  }
}

inline void interpolate_line(const InterpolateRow& p) {
  const Vf above_share = set(p.above_share), below_share = set(p.below_share);
  for (int64_t x = 0; x < p.width; x += lanes) {
    const int count = x + lanes <= p.width ? lanes : static_cast<int>(p.width - x);
    const Vf above = count == lanes ? load(p.above + x) : load_n(p.above + x, count);
    const Vf below = count == lanes ? load(p.below + x) : load_n(p.below + x, count);
    store_n(p.scratch + x, fma(above, above_share, below * below_share), count);
  }
  // A plain loop, which the compiler turns into gathers where the level has them.
  const float* SN_RESTRICT line = p.scratch;
  float* SN_RESTRICT dst = p.dst;
  for (int64_t x = 0; x < p.outputs; ++x) {
    dst[x] = line[p.first[x]] * p.first_share[x] + line[p.second[x]] * p.second_share[x];
  }
}

// A product that compilers do not make part of an FMA, which would round once where the host rounds twice.
SN_INLINE Vf rounded_product(Vf a, Vf b) { return hold(a * b); }

inline void interpolate_lanes_by_shares(const InterpolateRow& p) {
  for (int64_t x = 0; x < p.outputs; ++x) {
    const int64_t first = p.first[x] * p.channels, second = p.second[x] * p.channels;
    const Vf shares[4] = {set(p.first_share[x] * p.above_share), set(p.second_share[x] * p.above_share),
                          set(p.first_share[x] * p.below_share), set(p.second_share[x] * p.below_share)};
    const float* const from[4] = {p.above + first, p.above + second, p.below + first, p.below + second};
    float* dst = p.dst + x * p.channels;
    for (int64_t c = 0; c < p.channels; c += lanes) {
      const int count = c + lanes <= p.channels ? lanes : static_cast<int>(p.channels - c);
      Vf mixed = rounded_product(shares[0], load_n(from[0] + c, count));
      for (int i = 1; i < 4; ++i) mixed = mixed + rounded_product(shares[i], load_n(from[i] + c, count));
      store_n(dst + c, mixed, count);
    }
  }
}

inline void interpolate_line_by_shares(const InterpolateRow& p) {
  const Vf above_share = set(p.above_share), below_share = set(p.below_share);
  for (int64_t x = 0; x < p.outputs; x += lanes) {
    const int count = x + lanes <= p.outputs ? lanes : static_cast<int>(p.outputs - x);
    alignas(64) float near[4][lanes] = {};
    for (int i = 0; i < count; ++i) {
      near[0][i] = p.above[p.first[x + i]], near[1][i] = p.above[p.second[x + i]];
      near[2][i] = p.below[p.first[x + i]], near[3][i] = p.below[p.second[x + i]];
    }
    const Vf first_share = load_n(p.first_share + x, count), second_share = load_n(p.second_share + x, count);
    Vf mixed = rounded_product(first_share * above_share, load(near[0]));
    mixed = mixed + rounded_product(second_share * above_share, load(near[1]));
    mixed = mixed + rounded_product(first_share * below_share, load(near[2]));
    mixed = mixed + rounded_product(second_share * below_share, load(near[3]));
    store_n(p.dst + x, mixed, count);
  }
}

}  // namespace softneuro::SN_ISA

namespace softneuro {

SN_KERNEL_TABLE(InterpolateKernels, interpolate) = {.lanes = SN_ISA::interpolate_lanes,
                                                    .line = SN_ISA::interpolate_line,
                                                    .lanes_by_shares = SN_ISA::interpolate_lanes_by_shares,
                                                    .line_by_shares = SN_ISA::interpolate_line_by_shares};

}  // namespace softneuro
