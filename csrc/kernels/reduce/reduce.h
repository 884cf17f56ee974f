// Sums, maxima and minima over contiguous rows and over columns.
#pragma once

#include <cstdint>

#include "base/arch.h"

namespace softneuro {

// sum: in blocks whose sums are added with compensation, so that the error does not grow with the length; squares and
// magnitudes are sums of these. max, min: NaN if any is; of nothing -infinity, infinity.
enum class ReduceOp : uint8_t { sum, max, min, squares, magnitudes };
inline constexpr int reduce_ops = 5;

// dst[r] = op over i < count of src[r * stride + i], for r < rows.
using ReduceRowsKernel = void (*)(float* dst, const float* src, int64_t rows, int64_t count, int64_t stride);
// dst[i] = op over k < count of src[k * stride + i], for i < columns.
using ReduceColumnsKernel = void (*)(float* dst, const float* src, int64_t count, int64_t stride, int64_t columns);

// By op.
struct ReduceKernels {
  ReduceRowsKernel rows[reduce_ops];
  ReduceColumnsKernel columns[reduce_ops];
};

const ReduceKernels& reduce_kernels(Isa isa);

}  // namespace softneuro
