// What routines ask that skip zeros of weights.
#pragma once

#include "base/error.h"
#include "base/refusal.h"
#include "layers/constant_data.h"

namespace softneuro {

inline Refusal check_zeros(const ConstantData& weight) {
  return weight.traits().str().empty() ? Refusal("too few of the weights are zero") : Refusal();
}

// What is packed is counted first, and the memory is the host's, who may write to it meanwhile: there is room for as
// many values as were counted, no more.
inline void expect_unchanged(bool unchanged) {
  if (!unchanged) throw Error("a weight has changed while it was packed", {}, "do not write to it during a first call");
}

}  // namespace softneuro
