// Rows of signed bytes as floats in the order of gemm's packed panels.
//
//   to[l][i] = scales[i] * rows[i][l],   i < n, l < k
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/arch.h"

namespace softneuro {

// to: [k][n, rounded up to whole vectors], zero past n.
using DecodeRowsKernel = void (*)(int n, int k, const int8_t* rows, ptrdiff_t stride, const float* scales, float* to);

// Null if this build has none for the level.
DecodeRowsKernel decode_rows_kernel(Isa isa);

}  // namespace softneuro
