// Products of a few vectors with weights as models have them, row after row, which takes no second copy of the weights.
//
//   dst[i][n] = act(factors[n] * (sum over k of x[i][k] * weights[n][k]) + bias[n] + residual[i][n])
#pragma once

#include <cstddef>

#include "base/arch.h"
#include "base/dtype.h"
#include "kernels/dot_vectors.h"

namespace softneuro {

struct DotRows : DotVectors {
  static constexpr int most_vectors = 4;
  static constexpr int most_of_bytes = 16;  // vectors, of weights that are int8
  // Rows read at a time, each from a part of the weights of its own: streams that never jump. More take more of
  // memory's bandwidth, as long as there are registers for their sums.
  static constexpr bool has_streams(int streams, int vectors) { return streams == 4 || (streams == 8 && vectors == 1); }

  const void* weights;   // dense
  DType type;            // of the weights: float32, float16, bfloat16 or int8
  const float* factors;  // null: 1
  int k;                 // elements of a row
  int streams;           // has_streams
};

// Rows [begin, end) of the weights.
using DotRowsKernel = void (*)(const DotRows&, int begin, int end);

// Null if this build has none for the level.
DotRowsKernel dot_rows_kernel(Isa isa);

}  // namespace softneuro
