// Routines share this whose products have additions for some multiplications (kernels/winograd_1968/pairs.h).
#pragma once

#include "kernels/conv_winograd_1968/conv_winograd_1968.h"
#include "layers/contract/params.h"

namespace softneuro {

// Pixels (rows of a matrix) that are prepared together, how work is dealt to threads (SplitBy).
SN_PARAMS(Winograd1968Params, rows, split);

class Winograd1968Routine : public Routine {
 public:
  Winograd1968Routine(std::string layer_type, Isa isa, Schema schema);

  bool promising(const Problem& problem) const final;
  std::vector<std::string> param_names() const final { return Winograd1968Params::names(); }
  std::vector<Tuning> tunings(const Problem& problem) const final;
  Packing packing(const Problem& problem, const Tuning& tuning) const final;
  std::string pack_key(const Problem&, const Tuning&) const final { return {}; }
  void pack(const Problem& problem, const Tuning& tuning, Packed& to) const final;
  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const final;
  double expected_error(const Problem& problem, const Tuning& tuning) const final;

 protected:
  const ConvWinograd1968Kernels& kernels() const { return *conv_winograd_1968_kernels(info().isa); }

 private:
  virtual PointwiseShape shape(const Problem& problem) const = 0;
  // Counts the pixels of an image, or the rows of the matrix.
  virtual int64_t pixels(const Problem& problem) const = 0;
  // How work is best dealt, as a guess.
  virtual int likely_split(const Problem& problem) const = 0;
  // The params are checked.
  virtual std::unique_ptr<const Prepared> prepare_products(const Problem& problem, const Winograd1968Params& params,
                                                           std::shared_ptr<const Packed> packed) const = 0;
};

// Where it may pay to prepare pixels for so many output channels.
bool winograd_1968_promises(Isa isa, int64_t out_channels);
// The section "weights". The bias is among the terms that kernels read beside each output block's weights.
Packing winograd_1968_packing(const PointwiseShape& shape, Isa isa);
void pack_winograd_1968(const Layer& layer, const PointwiseShape& shape, Isa isa, Packed& to);
// The error for samples that are not negative, whose pairs' products add up beside the result.
double winograd_1968_error(int64_t in_channels);

// Output blocks.
inline int winograd_1968_panels(const PointwiseShape& shape, int block) {
  return (shape.out_channels + block - 1) / block;
}

}  // namespace softneuro
