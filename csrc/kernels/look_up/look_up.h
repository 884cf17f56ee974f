// Functions of one byte: a table of all of them.
#pragma once

#include <array>
#include <cstdint>

#include "base/arch.h"

namespace softneuro {

using Lut = std::array<uint8_t, 256>;  // by the byte's bits

// dst[i] = table[src[i]]; dst may be src.
using LookUpKernel = void (*)(const Lut& table, const uint8_t* src, uint8_t* dst, int64_t count);

// Null where this build lacks the level.
LookUpKernel look_up_kernel(Isa isa);

}  // namespace softneuro
