// Decoded sums of one row of a tile, as they are stored between quantized blobs.
#pragma once

#include <cstddef>

#include "simd/simd.h"

namespace softneuro::SN_ISA {
namespace winograd {

struct TileSums {
  const float* at;
  ptrdiff_t stride;
  int rows, column, columns;
  ptrdiff_t dst, residual;

  SN_INLINE ptrdiff_t in_dst(ptrdiff_t) const { return dst; }
  SN_INLINE ptrdiff_t in_residual(ptrdiff_t) const { return residual; }
};

}  // namespace winograd
}  // namespace softneuro::SN_ISA
