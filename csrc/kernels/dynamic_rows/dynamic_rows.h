// Around products of rows that are quantized in the run: what range their values have, and what becomes of the sums.
#pragma once

#include <cstdint>

#include "base/arch.h"

namespace softneuro {

struct FloatRange {
  float least, most;
};

// A row of sums of bytes a[l] (of zero point `zero`) times b[j][l] (of zero point zeros[j]):
//
//   dst[j] = row * scale[j] * (sums[j] - zero * columns[j] - total * zeros[j]) + bias[j]
//
// where columns[j] is the sum over l of b[j][l], and `total` that of a[l] - zero. The product of the scales is rounded,
// the integers are exact.
struct DynamicRow {
  const int32_t* sums = nullptr;  // these and what is by column are padded to whole blocks of 16
  const int32_t* columns = nullptr;
  const int32_t* zeros = nullptr;  // null: zeros
  const float* scale = nullptr;
  const float* bias = nullptr;
  int32_t zero = 0, total = 0;
  float row = 1;
};

struct DynamicRowsKernels {
  // The range of src and zero; both ends are NaN if any value is NaN or infinite.
  FloatRange (*range)(const float* src, int64_t count);
  int32_t (*sum)(const uint8_t* src, int64_t count);
  void (*finish)(const DynamicRow&, float* dst, int64_t count);
  // Where all rows have the same zero point and scale, for gemm_int8: start - zero * columns, and the product of the
  // scales. count: whole blocks.
  void (*fold)(const DynamicRow&, const int32_t* start, int32_t* folded_start, float* folded_scale, int64_t count);
};

// Null where this build lacks the level.
const DynamicRowsKernels* dynamic_rows_kernels(Isa isa);

}  // namespace softneuro
