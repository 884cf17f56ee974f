// What layers need to be computed by Strassen's product: their sizes as matrices, and the rest is shared.
#pragma once

#include "layers/routine.h"

namespace softneuro {

// Per image: pixels or rows x weights of [n][k], all rows dense, or one row an image.
struct MatrixView {
  int64_t images = 1, m = 0, n = 0, k = 0;
  bool rows_are_images = false;  // m rows, each at the blob's batch stride; images is 1
};

class StrassenRoutine : public Routine {
 public:
  StrassenRoutine(std::string layer_type, Isa isa, Schema schema);

  Refusal check(const Problem& problem) const final;
  std::vector<std::string> param_names() const final { return {"depth", "panel"}; }
  std::vector<Tuning> tunings(const Problem& problem) const final;
  size_t packed_bytes(const Problem& problem, const Tuning& tuning) const final;
  std::shared_ptr<const Packed> pack(const Problem& problem, const Tuning& tuning) const final;
  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const final;
  double expected_error(const Problem& problem, const Tuning& tuning) const final;

 private:
  // Why the layer is no matrix product, if so.
  virtual Refusal is_product(const Problem& problem) const = 0;
  // Only images and m may depend on the blobs' shapes.
  virtual MatrixView matrices(const Problem& problem) const = 0;
  MatrixView checked_view(const Problem& problem, const Tuning& tuning) const;
};

}  // namespace softneuro
