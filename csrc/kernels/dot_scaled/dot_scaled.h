// Products of a few vectors with weights in fewer bits than float32 has, for where these come from memory: integers of
// 16 or 20 bits, of which 64 along a row share a scale. (Block floating point; Wilkinson, "Rounding Errors in Algebraic
// Processes", 1963.)
//
//   dst[i][n] = act(sum over k of x[i][k] * scale[n][k / 64] * integer[n][k] + bias[n] + residual[i][n])
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/arch.h"
#include "kernels/dot_vectors.h"

namespace softneuro {

struct DotScaled : DotVectors {
  static constexpr int group = 64;  // weights of a row that share a scale
  static constexpr int most_vectors = 4;
  static constexpr bool has_bits(int bits) { return bits == 16 || bits == 20; }

  const int32_t* weights;  // as pack makes them
  int n, k;                // outputs, floats of a vector
  int bits;                // has_bits
};

struct DotScaledKernels {
  int lanes;  // outputs of a panel
  // All of weights[n][k], dense. Each integer is at most half of one from its weight, the largest of a group of w is
  // 2^(bits - 1) - 1. Groups of which none is above 1e-28 are taken for zeros; what is not finite makes its group NaN.
  void (*pack)(int n, int k, int bits, const float* weights, int32_t* packed);
  // Panels [begin, end).
  void (*run)(const DotScaled&, int begin, int end);
};

// Null where this build or machine lacks the level.
const DotScaledKernels* dot_scaled_kernels(Isa isa);

// Integers of the packing.
size_t dot_scaled_packed_size(int n, int k, int bits, int lanes);
// Relative L2 error to expect of weights that are normally distributed.
double dot_scaled_error(int bits);

}  // namespace softneuro
