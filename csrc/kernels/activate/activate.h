// An activation over contiguous elements, after adding a residual.
#pragma once

#include <cstdint>

#include "base/arch.h"
#include "kernels/epilogue.h"

namespace softneuro {

struct ActivateFormats {
  ElementFormat dst = {}, src = {}, residual = {};
};

// dst[i] = activation(src[i] + residual[i]) for i < count; residual may be null, dst may be any of the two that is of
// its type. formats: null if all is float32.
using ActivateKernel = void (*)(void* dst, const void* src, const void* residual, int64_t count,
                                const Activation& activation, const ActivateFormats* formats);

ActivateKernel activate_kernel(Isa isa);

}  // namespace softneuro
