// Products of a few vectors with weights of which many are zero, for where these come from memory: the others are kept,
// and where they were. Three forms of it, by the bits that this takes:
//
//   1    a bitmap: for every 64 weights of a row 64 bits, then those that are not zero. 4 d + 1/8 bytes for each
//   weight,
//        if a share of d is not zero
//   8    16 weights at a time, of 256 neighbouring columns: the first column, by how far each is from it, the weights.
//        5.25 d bytes; groups that 256 columns do not fill are filled up with zeros
//   16   likewise, of 65536 columns: 6.25 d bytes
//
//   dst[i][n] = act(sum over k of x[i][k] * weights[n][k] + bias[n] + residual[i][n])
//
// Zeros count as in a dense product: one that meets a value that is not finite makes the sum NaN.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/arch.h"
#include "kernels/epilogue.h"

namespace softneuro {

struct DotSparse {
  static constexpr int most_vectors = 4;
  static constexpr bool has_form(int bits) { return bits == 1 || bits == 8 || bits == 16; }

  const int32_t* weights;  // as dot_sparse_pack makes them
  const int64_t* starts;
  int k;                        // floats of a vector
  int bits;                     // has_form
  int vectors;                  // 1 ... most_vectors
  bool fetch;                   // weights ahead into L2: for those that come from memory
  const float* x;               // what copy makes of each vector, dot_sparse_width(k) floats apart
  int nonfinite[most_vectors];  // as copy counts them
  float* dst;
  ptrdiff_t dst_stride;  // of the residual too
  Epilogue epilogue;     // bias and residual are not padded
};

struct DotSparseKernels {
  // A vector, and zeros behind it, to dot_sparse_width(k) floats. How many of it are not finite.
  int (*copy)(const float* x, int k, float* to);
  // Rows [begin, end) of the weights.
  void (*run)(const DotSparse&, int begin, int end);
};

// Null where this build or machine lacks the level.
const DotSparseKernels* dot_sparse_kernels(Isa isa);

size_t dot_sparse_width(int k);
// What weights[n][k], dense, are packed to: at starts[i] row i begins, starts has n + 1 elements. Returns the integers
// that it takes, which it only counts where starts and packed are null.
size_t dot_sparse_pack(int n, int k, int bits, const float* weights, int64_t* starts, int32_t* packed);

}  // namespace softneuro
