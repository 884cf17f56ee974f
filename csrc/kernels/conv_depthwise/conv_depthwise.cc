#include "kernels/conv_depthwise/conv_depthwise.h"

#include "kernels/integers.h"

namespace softneuro {

#define SN_KERNELS(isa) extern const ConvDepthwiseKernels conv_depthwise_##isa;
#include "kernels/conv_depthwise/kernels.inc"
#undef SN_KERNELS

const ConvDepthwiseKernels* conv_depthwise_kernels(Isa isa) {
  if (!isa_available(isa)) return nullptr;
#define SN_KERNELS(level) \
  if (isa == Isa::level) return &conv_depthwise_##level;
#include "kernels/conv_depthwise/kernels.inc"
#undef SN_KERNELS
  return nullptr;
}

size_t conv_depthwise_packed_size(int channels, int kernel_h, int kernel_w, int block) {
  return static_cast<size_t>(round_up(channels, block)) * kernel_h * kernel_w;
}

void conv_depthwise_pack(int channels, int kernel_h, int kernel_w, int block, const float* weights, float* packed) {
  const int taps = kernel_h * kernel_w;
  for (int first = 0; first < channels; first += block) {
    for (int tap = 0; tap < taps; ++tap) {
      for (int lane = 0; lane < block; ++lane) {
        const int k = first + lane;
        *packed++ = k < channels ? weights[static_cast<size_t>(k) * taps + tap] : 0.0f;
      }
    }
  }
}

}  // namespace softneuro
