// matmul: a[...,M,K] * b[...,K,N] -> [...,M,N]; leading axes broadcast, either operand may be given transposed.
#pragma once

#include "base/tensor.h"
#include "layers/contract/layer.h"

namespace softneuro {

struct MatmulParams {
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;  // memory is [K,M], [N,K]
  Shape batch;                                    // the output's leading axes
  // By leading axis of the output: elements from one index to the next in a and b, 0 where broadcast.
  Shape a_stride, b_stride;

  // Offsets of one matrix of the batch, in elements.
  std::pair<int64_t, int64_t> offsets(int64_t index) const;
};

// One matrix of a blob: rows of elements side by side.
struct Matrix {
  void* data = nullptr;
  int64_t stride = 0;  // elements from row to row

  template <typename T>
  T* as(int64_t row = 0) const {
    return static_cast<T*>(data) + row * stride;
  }
};
// That of one index of the result's leading axes, to which the blob's broadcast.
Matrix matrix_at(const TensorView& view, const Shape& batch, int64_t index);

// Throws Error about the first thing that is wrong with attributes or inputs.
MatmulParams matmul_params(const Layer& layer, const TensorDesc& a, const TensorDesc& b);

}  // namespace softneuro
