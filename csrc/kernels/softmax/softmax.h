// exp(x - max) / sum(exp(x - max)), or its logarithm x - max - log(sum), along rows or columns.
#pragma once

#include <cstdint>

#include "base/arch.h"
#include "kernels/epilogue.h"

namespace softneuro {

struct SoftmaxArgs {
  void* dst;
  const void* src;                         // may be dst, if of its type
  int64_t count;                           // elements of one softmax
  int64_t number;                          // rows, one after the other, or columns
  int64_t dst_stride = 0, src_stride = 0;  // of columns: from one of their elements to the next
  bool safe = false;                       // zeros, not NaN, where all is -inf
  ElementFormat to = {}, from = {};
  float* scratch =
      nullptr;  // unless all is float32: `count` floats for rows, columns_at_once times as many for columns

  static constexpr int columns_at_once = 64;
};
using SoftmaxKernel = void (*)(const SoftmaxArgs&);

// [log]
struct SoftmaxKernels {
  SoftmaxKernel rows[2], columns[2];
};

const SoftmaxKernels& softmax_kernels(Isa isa);

}  // namespace softneuro
