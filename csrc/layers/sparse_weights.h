// What routines ask that skip zeros of weights.
#pragma once

#include "base/refusal.h"
#include "layers/constant_data.h"

namespace softneuro {

inline Refusal check_zeros(const ConstantData& weight) {
  return weight.traits().str().empty() ? Refusal("too few of the weights are zero") : Refusal();
}

}  // namespace softneuro
