#include "kernels/conv_bfloat16/conv_bfloat16.h"

#include "kernels/integers.h"

namespace softneuro {

#define SN_KERNELS(isa) extern const ConvBfloat16Kernels conv_bfloat16_##isa;
#include "kernels/conv_bfloat16/kernels.inc"
#undef SN_KERNELS

const ConvBfloat16Kernels* conv_bfloat16_kernels(Isa isa) {
  if (!isa_available(isa)) return nullptr;
#define SN_KERNELS(level) \
  if (isa == Isa::level) return &conv_bfloat16_##level;
#include "kernels/conv_bfloat16/kernels.inc"
#undef SN_KERNELS
  return nullptr;
}

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
