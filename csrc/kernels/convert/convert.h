// Elements of one type from as many of another, side by side in memory: exact to float32, rounded to nearest even from
// it.
#pragma once

#include <cstdint>

#include "base/dtype.h"

namespace softneuro {

enum class Isa : unsigned char;

// dst[i] = src[i] for i < count. Halves keep NaN, and what float16 cannot hold becomes infinite. To integers go
// floats that are integers of the type's range. A truth value is whether x != 0.
using ConvertKernel = void (*)(const void* src, void* dst, int64_t count);

// The types that there are kernels for, to float32 and from it.
#define SN_CONVERTED(X) \
  X(float16, Float16)   \
  X(bfloat16, BFloat16) \
  X(uint8, uint8_t)     \
  X(int8, int8_t)       \
  X(int32, int32_t)     \
  X(int64, int64_t)     \
  X(boolean, Bool)

struct ConvertKernels {
#define SN_FIELDS(name, type) ConvertKernel from_##name, to_##name;
  SN_CONVERTED(SN_FIELDS)
#undef SN_FIELDS
};

// Null if this build has none for the level, or none between these types.
ConvertKernel convert_kernel(Isa isa, DType from, DType to);

}  // namespace softneuro
