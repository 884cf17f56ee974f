#include "kernels/conv_first/conv_first.h"

#include <algorithm>

#include "kernels/integers.h"
#include "kernels/levels.h"

namespace softneuro {

SN_KERNEL_LIST(ConvFirstKernels, conv_first, SN_VECTOR_LEVELS)
const ConvFirstKernels* conv_first_kernels(Isa isa) { return find_kernels(conv_first_list, isa); }

size_t conv_first_packed_size(const ConvFirstArgs& sizes, int block) {
  return static_cast<size_t>(round_up(sizes.out_channels, block)) * sizes.in_channels * sizes.kernel_h * sizes.kernel_w;
}

void conv_first_pack(const ConvFirstArgs& sizes, int block, const float* weights, float* packed) {
  const int products = sizes.in_channels * sizes.kernel_h * sizes.kernel_w;
  const int channels = round_up(sizes.out_channels, block);
  for (int first = 0; first < channels; first += 2 * block) {
    const int width = std::min(2 * block, channels - first);
    for (int l = 0; l < products; ++l, packed += width) {
      for (int lane = 0; lane < width; ++lane) {
        const int k = first + lane;
        packed[lane] = k < sizes.out_channels ? weights[static_cast<size_t>(k) * products + l] : 0.0f;
      }
    }
  }
}

}  // namespace softneuro
