#include "kernels/conv_bfloat16/conv_bfloat16.h"

#include "kernels/integers.h"
#include "kernels/levels.h"

namespace softneuro {

SN_KERNEL_LIST(ConvBfloat16Kernels, conv_bfloat16, SN_TILE_LEVELS)
const ConvBfloat16Kernels* conv_bfloat16_kernels(Isa isa) { return find_kernels(conv_bfloat16_list, isa); }

int conv_bfloat16_panels(const ConvBfloat16Shape& shape, int block) {
  return ceil_div(ceil_div(shape.out_channels, block), shape.panel);
}

size_t conv_bfloat16_packed_bytes(const ConvBfloat16Shape& shape, int block) {
  const auto tile = static_cast<size_t>(block * block) * 4;
  const int blocks = ceil_div(shape.out_channels, block), pairs = ceil_div(shape.in_channels, 2 * block);
  return tile * static_cast<size_t>(shape.parts * blocks) * static_cast<size_t>(pairs) *
         static_cast<size_t>(shape.taps());
}

}  // namespace softneuro
