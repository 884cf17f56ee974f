// The routine of rows that are normalised one by one.
#pragma once

#include "layers/layer_norm/reference.h"

namespace softneuro {

// Rows of a layer type's params, which throw Error about a layer that is none of theirs.
using NormalizeParams = NormalizedRows (*)(const Layer& layer, const TensorDesc& x);

class NormalizeRoutine final : public Routine {
 public:
  NormalizeRoutine(const char* layer_type, Isa isa, NormalizeParams params);

  Refusal check(const Problem& problem) const override;
  // The weight, ones if the layer has a bias alone, and the bias if it has one.
  Packing packing(const Problem& problem, const Tuning& tuning) const override;
  void pack(const Problem& problem, const Tuning& tuning, Packed& to) const override;
  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const override;

 private:
  NormalizeParams params_;
};

}  // namespace softneuro
