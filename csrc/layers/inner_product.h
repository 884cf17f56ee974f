// What routines whose products have additions for some of the multiplications share (kernels/inner_product/pairs.h).
#pragma once

#include "kernels/conv_inner_product/conv_inner_product.h"
#include "layers/params.h"

namespace softneuro {

// Pixels (rows of a matrix) that are prepared together, how work is dealt to threads (SplitBy).
SN_PARAMS(InnerProductParams, rows, split);

class InnerProductRoutine : public Routine {
 public:
  InnerProductRoutine(std::string layer_type, Isa isa, Schema schema);

  bool promising(const Problem& problem) const final;
  std::vector<std::string> param_names() const final { return InnerProductParams::names(); }
  std::vector<Tuning> tunings(const Problem& problem) const final;
  Packing packing(const Problem& problem, const Tuning& tuning) const final;
  std::string pack_key(const Problem&, const Tuning&) const final { return {}; }
  void pack(const Problem& problem, const Tuning& tuning, Packed& to) const final;
  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const final;
  double expected_error(const Problem& problem, const Tuning& tuning) const final;

 protected:
  const ConvInnerProductKernels& kernels() const { return *conv_inner_product_kernels(info().isa); }

 private:
  virtual PointwiseShape shape(const Problem& problem) const = 0;
  // Of an image, or rows of the matrix.
  virtual int64_t pixels(const Problem& problem) const = 0;
  // How work is best dealt, as a guess.
  virtual int likely_split(const Problem& problem) const = 0;
  // The params are checked.
  virtual std::unique_ptr<const Prepared> prepare_products(const Problem& problem, const InnerProductParams& params,
                                                           std::shared_ptr<const Packed> packed) const = 0;
};

// Where it may pay to prepare pixels for so many output channels.
bool inner_product_promises(Isa isa, int64_t out_channels);
// The section "weights". The bias is among the terms that kernels read beside each output block's weights.
Packing inner_product_packing(const PointwiseShape& shape, Isa isa);
void pack_inner_product(const Layer& layer, const PointwiseShape& shape, Isa isa, Packed& to);
// Of samples that are not negative, whose pairs' products add up beside the result.
double inner_product_error(int64_t in_channels);

// Output blocks.
inline int inner_product_panels(const PointwiseShape& shape, int block) {
  return (shape.out_channels + block - 1) / block;
}

}  // namespace softneuro
