// A tensor as nets take it, for ops on the LibTorch stable ABI.
#pragma once

#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

namespace softneuro {

// Copies where it has to.
inline torch::stable::Tensor row_major(const torch::stable::Tensor& tensor) {
  return tensor.is_contiguous() ? tensor : torch::stable::contiguous(tensor);
}

}  // namespace softneuro
