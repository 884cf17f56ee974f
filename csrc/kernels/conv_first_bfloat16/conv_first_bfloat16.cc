#include "kernels/conv_first_bfloat16/conv_first_bfloat16.h"

#include <vector>

#include "kernels/conv_first_bfloat16/windows.h"
#include "kernels/levels.h"

namespace softneuro {

SN_KERNEL_LIST(ConvFirstBfloat16Kernels, conv_first_bfloat16, SN_TILE_LEVELS)
const ConvFirstBfloat16Kernels* conv_first_bfloat16_kernels(Isa isa) {
  return find_kernels(conv_first_bfloat16_list, isa);
}

size_t conv_first_bfloat16_pixel_bytes(const ConvFirstArgs& s, int block, int parts) {
  const ConvBfloat16Shape shape = window_shape(s, block, parts);
  return static_cast<size_t>(shape.in_channels) * static_cast<size_t>(parts) * 2;
}

size_t conv_first_bfloat16_packed_bytes(const ConvFirstArgs& s, int block, int parts) {
  return conv_bfloat16_packed_bytes(window_shape(s, block, parts), block);
}

void conv_first_bfloat16_pack(const ConvFirstArgs& s, const ConvBfloat16Kernels& kernels, int parts,
                              const float* weights, void* packed) {
  const int block = kernels.block;
  const ConvBfloat16Shape shape = window_shape(s, block, parts);
  const int rows = window_rows(s);
  std::vector<float> as_pixels(static_cast<size_t>(s.out_channels) * static_cast<size_t>(shape.in_channels));
  float* to = as_pixels.data();
  for (int k = 0; k < s.out_channels; ++k, to += shape.in_channels) {
    for (int row = 0; row < rows; ++row) {
      for (int tap = 0; tap < s.kernel_w; ++tap) {
        const int n = row / 2 * s.kernel_w + tap;
        to[n / block * 2 * block + row % 2 * block + n % block] = *weights++;
      }
    }
  }
  kernels.pack(shape, as_pixels.data(), packed);
}

}  // namespace softneuro
