// What routines ask that skip zeros of weights.
#pragma once

#include <algorithm>

#include "base/error.h"
#include "base/refusal.h"
#include "layers/weights/constant_data.h"

namespace softneuro {

inline Refusal check_zeros(const ConstantData& weight) {
  return weight.traits().str().empty() ? Refusal("too few of the weights are zero") : Refusal();
}

// The same of those that skip blocks of 16 outputs by 4 inputs.
inline Refusal check_zero_blocks(const ConstantData& weight) {
  if (const Refusal refusal = check_zeros(weight); !refusal.accepted()) return refusal;
  return weight.traits().zero_blocks ? Refusal() : Refusal("too few blocks of 16 outputs and 4 inputs are all zero");
}

// Counts the values themselves, as a factor of rows may be zero, or make NaN of zeros.
inline int64_t count_nonzeros(const ConstantData& weight) {
  const auto values = weight.values();
  return weight.elements() - std::count(values.get(), values.get() + weight.elements(), 0.0F);
}

// What is packed is counted first, and the memory is the host's, who may write to it meanwhile: there is room for as
// many values as were counted, no more.
inline void expect_unchanged(bool unchanged) {
  if (!unchanged) throw Error("a weight has changed while it was packed", {}, "do not write to it during a first call");
}

}  // namespace softneuro
