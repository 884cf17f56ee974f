// Products with weights that become floats in scratch, a part at a time, so that no copy of them in floats is kept.
#pragma once

#include "layers/linear/rows.h"
#include "layers/products/gemm_tasks.h"

namespace softneuro {

class DecodedGemm : public PreparedSplit {
 public:
  // unit: inputs that have to be decoded together, a power of two.
  DecodedGemm(const Problem& problem, const LinearParams& p, const GemmKernels& kernels, int panel, int unit);

  void run(const RunArgs& args) const final;

 protected:
  void set_bias(const float* bias) { args_.epilogue.bias = bias; }

 private:
  // Outputs, of which the first is that of a vector, as floats [input][output, rounded up to vectors], zero past the
  // last.
  virtual void decode(Range outputs, Range inputs, float* to) const = 0;
  void run_strip(const RunArgs& args, Range panels, Range rows, std::byte* scratch) const;

  const GemmKernels& kernels_;
  int outputs_, depth_;  // depth: inputs of a part
  GemmArgs args_;
  size_t decoded_ = 0;  // bytes of a task
};

}  // namespace softneuro
