#include "kernels/interpolate/interpolate.h"
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

}  // namespace softneuro::SN_ISA

namespace softneuro {

SN_KERNEL_TABLE(InterpolateKernels, interpolate) = {.lanes = SN_ISA::interpolate_lanes,
                                                    .line = SN_ISA::interpolate_line};

}  // namespace softneuro
