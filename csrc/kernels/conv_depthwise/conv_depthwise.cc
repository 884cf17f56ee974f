#include "kernels/conv_depthwise/conv_depthwise.h"

#include "kernels/integers.h"
#include "kernels/levels.h"

namespace softneuro {

SN_KERNEL_LIST(ConvDepthwiseKernels, conv_depthwise, SN_VECTOR_LEVELS)
const ConvDepthwiseKernels* conv_depthwise_kernels(Isa isa) { return find_kernels(conv_depthwise_list, isa); }

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
