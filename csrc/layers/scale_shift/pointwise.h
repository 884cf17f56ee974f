// x * scale + shift per channel of x[N,C,...], which batch_norm runs as, too.
#pragma once

#include <span>

#include "layers/shared/pointwise.h"

namespace softneuro {

// A routine of `layer_type` in one layout, which differs from others in its scales and shifts alone.
class ScaleShiftRoutine : public Routine {
 public:
  ScaleShiftRoutine(const char* layer_type, Isa isa, const Schema& schema);

  Refusal check(const Problem&) const final { return {}; }
  Packing packing(const Problem& problem, const Tuning& tuning) const final;
  void pack(const Problem& problem, const Tuning& tuning, Packed& to) const final;
  std::unique_ptr<const Prepared> prepare(const Problem& problem, const Tuning& tuning,
                                          std::shared_ptr<const Packed> packed) const final;

 private:
  // The layout of a constant with a value for each channel.
  Layout channels_layout() const;
  // Fills in C values each.
  virtual void values(const Layer& layer, std::span<float> scale, std::span<float> shift) const = 0;
};

}  // namespace softneuro
