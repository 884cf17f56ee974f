// Integers of four bits, eight in each lane of a vector.
#pragma once

#include "simd/integers.h"

namespace softneuro::SN_ISA {

// Number j of each lane, as two's complement.
template <int j>
SN_INLINE Vf nibble(Vi x) {
#if SN_VECTORS == SN_LEVEL_avx512
  // Looked up by the lower four bits: less work than two shifts and a conversion.
  const __m512 values = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1);
  return {_mm512_maskz_permutexvar_ps(0xffff, (__m512i)(x >> 4 * j), values)};
#else
  return to_float(x << (28 - 4 * j) >> 28);
#endif
}

}  // namespace softneuro::SN_ISA
