// What layers need to be computed by Strassen's product: their sizes as matrices, and the rest is shared.
#pragma once

#include "layers/contract/params.h"

namespace softneuro {

SN_PARAMS(StrassenParams, depth, panel);

// Per image: pixels or rows x weights of [n][k], all rows dense, or one row an image.
struct MatrixView {
  int64_t images = 1, m = 0, n = 0, k = 0;
  bool rows_are_images = false;  // m rows, each at the blob's batch stride; images is 1
};

class StrassenRoutine : public Routine {
 public:
  StrassenRoutine(std::string layer_type, Isa isa, Schema schema);

  Refusal check(const Problem& problem) const final;
  bool promising(const Problem& problem) const final;
  std::vector<std::string> param_names() const final { return StrassenParams::names(); }
  std::vector<Tuning> tunings(const Problem& problem) const final;
  Packing packing(const Problem& problem, const Tuning& tuning) const final;
  void pack(const Problem& problem, const Tuning& tuning, Packed& to) const final;
  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const final;
  double expected_error(const Problem& problem, const Tuning& tuning) const final;

 private:
  // Why the layer is no matrix product, if so.
  virtual Refusal is_product(const Problem& problem) const = 0;
  // Only images and m may depend on the blobs' shapes.
  virtual MatrixView matrices(const Problem& problem) const = 0;
};

}  // namespace softneuro
