// A row whose halves are turned against each other, as rotary position embedding does (Su et al., "RoFormer", 2021):
//
//   dst[i] = x[i] * cosine[i] - x[i + half] * sine[i],   dst[i + half] = x[i + half] * cosine[i + half] + x[i] * sine[i
//   + half]
#pragma once

#include <cstdint>

#include "base/arch.h"

namespace softneuro {

struct RotaryArgs {
  float* dst;  // of 2 * half elements, as all others; none may overlap it
  const float *x, *cosine, *sine;
  int64_t half;
};
using RotaryKernel = void (*)(const RotaryArgs&);

RotaryKernel rotary_kernel(Isa isa);

}  // namespace softneuro
