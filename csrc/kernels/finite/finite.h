// Whether values are finite: what routines ask that leave out products by zero, which are NaN where they are not.
#pragma once

#include <cstddef>

#include "base/arch.h"

namespace softneuro {

// All of n floats.
using FiniteKernel = bool (*)(const float*, size_t n);

// Null if this build has none for the level.
FiniteKernel finite_kernel(Isa isa);

}  // namespace softneuro
