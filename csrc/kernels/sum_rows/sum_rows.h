// The sum of many short rows: how kn2row's products, each of one tap, become pixels.
//
//   dst[i] = act(bias + residual[i] + sum over r of src[r](i)),   i < n, r < rows
//
// A row has values for i in [begin, end) and counts as zero elsewhere.
#pragma once

#include "base/arch.h"
#include "kernels/activation.h"

namespace softneuro {

struct SumRow {
  const float* values;  // of `begin`
  int begin, end;       // 0 <= begin <= end <= n
};

struct SumRows {
  const SumRow* src;
  int rows, n;
  float bias;
  const float* residual;  // null: none
  Activation activation;
  float* dst;
};

using SumRowsKernel = void (*)(const SumRows&);

// Null if this build has none for the level.
SumRowsKernel sum_rows_kernel(Isa isa);

}  // namespace softneuro
