// One row of a bilinear resampling.
#pragma once

#include <cstdint>

#include "kernels/epilogue.h"

namespace softneuro {

enum class Isa : unsigned char;

// mix(a, b)     = above_share * a + below_share * b
// dst[x, c]     = first_share[x] * mix(above, below)[first[x], c] + second_share[x] * mix(above, below)[second[x], c]
// for x < outputs, c < channels; above and below are rows of the input, `channels` elements per column.
//
// By shares, as ONNX Runtime has it, every product and sum rounded for itself, with a[i] for a[i, c]:
// dst[x, c]     = first_share[x] * above_share * above[first[x]] + second_share[x] * above_share * above[second[x]]
//               + first_share[x] * below_share * below[first[x]] + second_share[x] * below_share * below[second[x]]
struct InterpolateRow {
  const void *above, *below;
  float above_share, below_share;
  const int32_t *first, *second;
  const float *first_share, *second_share;
  int64_t outputs;
  void* dst;
  int64_t channels;
  ElementFormat from = {}, to = {};  // of the input and dst, whose types are the same
  // Only lines use these.
  int64_t width = 0;  // columns of the input
  // whole_lines(width) floats; if elements are no floats, so many for each of three rows, and as many as there are
  // outputs.
  float* scratch = nullptr;
};

using InterpolateKernel = void (*)(const InterpolateRow&);

// `lanes`: vectors over channels. `line`: one channel, vectors over columns.
struct InterpolateKernels {
  InterpolateKernel lanes = nullptr, line = nullptr;
  InterpolateKernel lanes_by_shares = nullptr, line_by_shares = nullptr;
};

// Nulls if this build has none for the level.
InterpolateKernels interpolate_kernels(Isa isa);

}  // namespace softneuro
