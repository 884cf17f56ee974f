// exp(x - max) / sum(exp(x - max)), or its logarithm x - max - log(sum), along rows or columns.
#pragma once

#include <cstdint>

#include "base/arch.h"

namespace softneuro {

// Row by row of `count` contiguous elements. dst may be src.
using SoftmaxRowsKernel = void (*)(float* dst, const float* src, int64_t rows, int64_t count);
// Down each of `columns` columns of `count` elements, which lie a stride of elements apart. dst may be src.
using SoftmaxColumnsKernel = void (*)(float* dst, const float* src, int64_t count, int64_t dst_stride,
                                      int64_t src_stride, int64_t columns);

// [log]
struct SoftmaxKernels {
  SoftmaxRowsKernel rows[2];
  SoftmaxColumnsKernel columns[2];
};

const SoftmaxKernels& softmax_kernels(Isa isa);

}  // namespace softneuro
