// An activation over contiguous elements, after adding a residual.
#pragma once

#include <cstdint>

#include "base/arch.h"
#include "kernels/activation.h"

namespace softneuro {

// dst[i] = activation(src[i] + residual[i]) for i < count; residual may be null, dst may be any of the two.
using ActivateKernel = void (*)(float* dst, const float* src, const float* residual, int64_t count,
                                const Activation& activation);

ActivateKernel activate_kernel(Isa isa);

}  // namespace softneuro
