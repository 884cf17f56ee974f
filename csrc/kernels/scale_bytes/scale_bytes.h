// Pixels of bytes to planes of floats, each channel by a line of its own:
//
//   dst[c][i] = src[i * pixel + c * channel] * scale[c] + shift[c]
//
// Planes of bytes have pixel = 1, pixels whose channels are together have channel = 1.
#pragma once

#include <cstdint>

#include "base/arch.h"

namespace softneuro {

struct ScaleBytesArgs {
  const uint8_t* src = nullptr;
  int64_t pixel = 1, channel = 1;  // bytes from pixel to pixel and from channel to channel
  float* dst = nullptr;            // [channels][pixels]
  int64_t pixels = 0;
  int channels = 1;  // if they are together: at most 4, and as many as a pixel has bytes
  const float* scale = nullptr;
  const float* shift = nullptr;
};
using ScaleBytesKernel = void (*)(const ScaleBytesArgs&);

// Null where this build lacks the level.
ScaleBytesKernel scale_bytes_kernel(Isa isa);

}  // namespace softneuro
