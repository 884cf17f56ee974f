// Loads of some lanes, the others zero and not touched.
#pragma once

#include "simd/simd.h"

namespace softneuro::SN_ISA {

SN_INLINE Vf load_some(const float* p, Vm some) {
#if SN_VECTORS == SN_LEVEL_avx512
  return {_mm512_maskz_loadu_ps(some.m, p)};
#elif SN_VECTORS == SN_LEVEL_avx2
  return {_mm256_maskload_ps(p, _mm256_castps_si256(some.m))};
#else
  float lane[lanes];
  for (int i = 0; i < lanes; ++i) lane[i] = some.m[i] ? p[i] : 0.0f;
  return load(lane);
#endif
}

}  // namespace softneuro::SN_ISA
