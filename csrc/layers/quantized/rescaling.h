// Quantized bytes to those of another grid.
#pragma once

#include "kernels/elementwise/elementwise.h"
#include "layers/contract/layer.h"

namespace softneuro {

class Rescaling {
 public:
  Rescaling(const Quantization& from, const Quantization& to, Isa isa);
  // dst may be src.
  void run(const void* src, void* dst, int64_t count) const;

 private:
  ElementwiseKernel add_;
  ElementwiseFormats formats_;
};

}  // namespace softneuro
