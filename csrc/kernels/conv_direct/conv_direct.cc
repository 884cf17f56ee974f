#include "kernels/conv_direct/conv_direct.h"

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

size_t conv_direct_panel_size(const ConvDirectShape& shape, int block, int panel) {
  return static_cast<size_t>(panel) * block * round_up(shape.in_channels, block) * shape.kernel_h * shape.kernel_w;
}

size_t conv_direct_bias_size(const ConvDirectShape& shape, int block) {
  return static_cast<size_t>(round_up(shape.groups * shape.out_channels, block));
}

}  // namespace softneuro
