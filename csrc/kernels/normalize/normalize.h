// Mean and variance of a row, about the mean or about zero, and the row brought to mean 0 and variance 1, scaled and
// shifted.
#pragma once

#include <cstdint>

#include "base/arch.h"
#include "kernels/epilogue.h"

namespace softneuro {

struct Moments {
  float center, offset;  // the mean is their sum: float32 alone does not hold it where it is large beside the deviation
  float variance;        // of the whole population
};

// Two passes, the second over the differences to the mean. count > 0.
using MomentsKernel = Moments (*)(const void* src, int64_t count, const ElementFormat& from);
// The mean of the squares. count > 0.
using MeanSquareKernel = float (*)(const void* src, int64_t count, const ElementFormat& from);

// dst[i] = ((src[i] - center) * factor + shift) * weight[i] + bias[i] for i < count; weight may be null, and bias
// too, which is of no account without weight. dst may be src, if of its type.
struct NormalizeArgs {
  void* dst;
  const void* src;
  const float *weight, *bias;
  int64_t count;
  float center, factor, shift;
  ElementFormat to = {}, from = {};
};
using NormalizeKernel = void (*)(const NormalizeArgs&);

struct NormalizeKernels {
  MomentsKernel moments;
  MeanSquareKernel mean_square;
  NormalizeKernel normalize;
};

const NormalizeKernels& normalize_kernels(Isa isa);

}  // namespace softneuro
