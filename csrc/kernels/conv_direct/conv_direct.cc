#include "kernels/conv_direct/conv_direct.h"

#include <algorithm>
#include <cstring>

#include "kernels/integers.h"

namespace softneuro {

#define SN_KERNELS(isa) extern const ConvDirectKernels conv_direct_##isa;
#include "kernels/conv_direct/kernels.inc"
#undef SN_KERNELS

const ConvDirectKernels* conv_direct_kernels(Isa isa) {
  if (!isa_available(isa)) return nullptr;
#define SN_KERNELS(level) \
  if (isa == Isa::level) return &conv_direct_##level;
#include "kernels/conv_direct/kernels.inc"
#undef SN_KERNELS
  return nullptr;
}

int conv_direct_panels(const ConvDirectShape& shape, int block, int panel) {
  return shape.groups * ceil_div(ceil_div(shape.out_channels, block), panel);
}

size_t conv_direct_packed_size(const ConvDirectShape& shape, int block) {
  return static_cast<size_t>(shape.groups) * round_up(shape.out_channels, block) * round_up(shape.in_channels, block) *
         shape.kernel_h * shape.kernel_w;
}

size_t conv_direct_bias_size(const ConvDirectShape& shape, int block) {
  return static_cast<size_t>(round_up(shape.groups * shape.out_channels, block));
}

void conv_direct_pack(const ConvDirectShape& shape, int block, int panel, const float* weights, float* packed) {
  const int taps = shape.kernel_h * shape.kernel_w;
  const int out_blocks = ceil_div(shape.out_channels, block), in_blocks = ceil_div(shape.in_channels, block);
  for (int g = 0; g < shape.groups; ++g) {
    const float* group = weights + static_cast<size_t>(g) * shape.out_channels * shape.in_channels * taps;
    for (int first = 0; first < out_blocks; first += panel) {
      const int width = std::min(panel, out_blocks - first) * block;  // lanes of this panel
      for (int cb = 0; cb < in_blocks; ++cb) {
        for (int tap = 0; tap < taps; ++tap) {
          for (int ci = 0; ci < block; ++ci, packed += width) {
            const int c = cb * block + ci;
            for (int lane = 0; lane < width; ++lane) {
              const int k = first * block + lane;
              const bool real = k < shape.out_channels && c < shape.in_channels;
              packed[lane] = real ? group[(static_cast<size_t>(k) * shape.in_channels + c) * taps + tap] : 0.0f;
            }
          }
        }
      }
    }
  }
}

}  // namespace softneuro
