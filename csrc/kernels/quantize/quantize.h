// Between floats and the eight bits that quantization makes of them, side by side in memory.
#pragma once

#include <cstdint>

#include "base/arch.h"

namespace softneuro {

// What a byte is: clamp(nearest(x / scale) + zero, least, most), of NaN the least. reciprocal: x times 1 / scale, both
// rounded, instead of the quotient. Bytes may be signed, as least says.
struct QuantizeSteps {
  float scale = 1;
  bool reciprocal = false;
  int32_t zero = 0, least = 0, most = 255;
};

struct QuantizeKernels {
  void (*to_bytes)(const QuantizeSteps&, const float* src, uint8_t* dst, int64_t count);
  // (byte - zero) * scale
  void (*to_floats)(const QuantizeSteps&, const uint8_t* src, float* dst, int64_t count);
};

// Null where this build lacks the level.
const QuantizeKernels* quantize_kernels(Isa isa);

}  // namespace softneuro
