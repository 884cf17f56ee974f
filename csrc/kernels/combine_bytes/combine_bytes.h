// Arithmetic on quantized bytes, element by element, each operand by its own parameters; in steps of the result:
//
//   dst = clamp(nearest(f(a - a_zero, b - b_zero)), least, most) + zero
//     add:      f = a * a_scale + b * b_scale
//     multiply: f = a * b * a_scale
//     rescale:  f = a * a_scale
#pragma once

#include <cstdint>

#include "base/arch.h"

namespace softneuro {

struct CombineBytes {
  int32_t a_zero = 0, b_zero = 0;
  float a_scale = 1, b_scale = 1;
  float least = 0, most = 255;  // without `zero`
  int32_t zero = 0;
};

struct CombineBytesKernels {
  // count elements of dst; dst may be a or b. `one`: b is a single element.
  void (*add)(const CombineBytes&, const uint8_t* a, const uint8_t* b, bool one, uint8_t* dst, int64_t count);
  void (*multiply)(const CombineBytes&, const uint8_t* a, const uint8_t* b, bool one, uint8_t* dst, int64_t count);
  void (*rescale)(const CombineBytes&, const uint8_t* a, uint8_t* dst, int64_t count);
};

// Null where this build lacks the level.
const CombineBytesKernels* combine_bytes_kernels(Isa isa);

}  // namespace softneuro
