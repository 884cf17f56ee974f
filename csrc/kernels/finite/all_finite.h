#pragma once

#include "simd/simd.h"

namespace softneuro::SN_ISA {

// One multiply-add for each vector: times zero what is not finite is NaN.
inline bool all_finite(const float* p, size_t n) {
  constexpr size_t wide = 4 * lanes;
  Vf zeros[4] = {zero(), zero(), zero(), zero()};
  size_t i = 0;
  for (; i + wide <= n; i += wide) {
    for (int j = 0; j < 4; ++j) zeros[j] = fma(load(p + i + j * lanes), zero(), zeros[j]);
  }
  for (; i < n; i += lanes) {
    const Vf x = n - i < lanes ? load_n(p + i, static_cast<int>(n - i)) : load(p + i);
    zeros[0] = fma(x, zero(), zeros[0]);
  }
  return !any(is_nan(zeros[0] + zeros[1] + zeros[2] + zeros[3]));
}

}  // namespace softneuro::SN_ISA
