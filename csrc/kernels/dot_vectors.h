// The vectors that kernels/dot_* multiply with weights, and what becomes of the products.
#pragma once

#include <cstddef>

#include "kernels/epilogue.h"

namespace softneuro {

struct DotVectors {
  int vectors;  // as many as the kernel takes at most
  bool fetch;   // weights ahead into L2: for those that come from memory
  const float* x;
  ptrdiff_t x_stride;
  float* dst;
  ptrdiff_t dst_stride;  // of the residual too
  Epilogue epilogue;     // bias and residual are not padded
};

}  // namespace softneuro
