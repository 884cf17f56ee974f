#include "kernels/conv_inner_product/conv_inner_product.h"

#include "kernels/conv_inner_product/layout.h"

namespace softneuro {

#define SN_KERNELS(isa) extern const ConvInnerProductKernels conv_inner_product_##isa;
#include "kernels/conv_inner_product/kernels.inc"
#undef SN_KERNELS

const ConvInnerProductKernels* conv_inner_product_kernels(Isa isa) {
  if (!isa_available(isa)) return nullptr;
#define SN_KERNELS(level) \
  if (isa == Isa::level) return &conv_inner_product_##level;
#include "kernels/conv_inner_product/kernels.inc"
#undef SN_KERNELS
  return nullptr;
}

size_t conv_inner_product_packed_size(const ConvInnerProductShape& shape, int block) {
  const ConvInnerProductLayout layout(shape, block);
  return static_cast<size_t>(layout.out_blocks) * layout.panel;
}

}  // namespace softneuro
