// What the routines for the first convolution of a net share: few channels, row-major in, nchw{c}c out.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/conv_first/conv_first.h"
#include "layers/contract/params.h"
#include "layers/conv2d/shapes.h"

namespace softneuro {

SN_PARAMS(FirstParams, rows);

class FirstConv2d : public Routine {
 public:
  using Routine::Routine;

  Refusal check(const Problem& problem) const override;
  std::vector<std::string> param_names() const override { return FirstParams::names(); }
  std::vector<Tuning> tunings(const Problem& problem) const override;
  std::string pack_key(const Problem&, const Tuning&) const override { return {}; }
  Packing packing(const Problem& problem, const Tuning& tuning) const override;
  void pack(const Problem& problem, const Tuning& tuning, Packed& to) const override;
  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const override;

  struct Kernel {
    size_t (*scratch_bytes)(const ConvFirstArgs&);
    void (*run)(const ConvFirstArgs&, int row_begin, int row_end, void* scratch);
  };

 protected:
  virtual Kernel kernel() const = 0;
  // The section "weights".
  virtual Packing weights_packing(const ConvFirstArgs& args) const = 0;
  virtual void pack_weights(const ConvFirstArgs& args, const float* weights, Packed& to) const = 0;
  // That the kernel copies for so many output rows at once.
  virtual int64_t copied_bytes(const Conv2dParams& p, int64_t rows) const = 0;

  int block() const { return info().out.layout.block; }
};

ConvFirstArgs first_args(const Conv2dParams& p);
// Rows of the input that so many output rows read.
int64_t rows_read(const Conv2dParams& p, int64_t rows);

}  // namespace softneuro
