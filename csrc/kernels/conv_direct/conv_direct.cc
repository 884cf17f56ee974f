#include "kernels/conv_direct/conv_direct.h"

#include "kernels/integers.h"
#include "kernels/levels.h"

namespace softneuro {

SN_KERNEL_LIST(ConvDirectKernels, conv_direct, SN_VECTOR_LEVELS)
const ConvDirectKernels* conv_direct_kernels(Isa isa) { return find_kernels(conv_direct_list, isa); }

int conv_direct_panels(const ConvDirectShape& shape, int block, int panel) {
  return shape.groups * ceil_div(ceil_div(shape.out_channels, block), panel);
}

size_t conv_direct_packed_size(const ConvDirectShape& shape, int block) {
  return static_cast<size_t>(shape.groups) * round_up(shape.out_channels, block) * round_up(shape.in_channels, block) *
         shape.kernel_h * shape.kernel_w;
}

size_t conv_direct_panel_size(const ConvDirectShape& shape, int block, int panel) {
  return static_cast<size_t>(panel) * block * round_up(shape.in_channels, block) * shape.kernel_h * shape.kernel_w;
}

size_t conv_direct_sums_size(const ConvDirectShape& shape, const ConvDirectTiling& tiling, int block) {
  const int width = shape.pointwise() ? 1 : shape.out_w;
  return static_cast<size_t>(tiling.panel) * tiling.row_block * width * block;
}

size_t conv_direct_bias_size(const ConvDirectShape& shape, int block) {
  return static_cast<size_t>(round_up(shape.groups * shape.out_channels, block));
}

}  // namespace softneuro
