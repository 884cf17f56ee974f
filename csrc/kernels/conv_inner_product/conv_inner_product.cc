#include "kernels/conv_inner_product/conv_inner_product.h"

#include <algorithm>

#include "kernels/conv_inner_product/layout.h"
#include "kernels/inner_product/pairs.h"
#include "kernels/levels.h"

namespace softneuro {

SN_KERNEL_LIST(ConvInnerProductKernels, conv_inner_product, SN_VECTOR_LEVELS)
const ConvInnerProductKernels* conv_inner_product_kernels(Isa isa) {
  return find_kernels(conv_inner_product_list, isa);
}

size_t conv_inner_product_packed_size(const PointwiseShape& shape, int block) {
  const ConvInnerProductLayout layout(shape, block);
  return static_cast<size_t>(layout.out_blocks) * layout.panel;
}

void conv_inner_product_pack(const PointwiseShape& shape, int block, const float* weights, const float* bias,
                             float* packed) {
  const ConvInnerProductLayout layout(shape, block);
  std::fill_n(packed, conv_inner_product_packed_size(shape, block), 0.F);
  for (int b = 0; b < layout.out_blocks; ++b, packed += layout.panel) {
    float* const terms = packed + layout.products;
    const int lanes = std::min(block, shape.out_channels - b * block);
    for (int lane = 0; lane < lanes; ++lane) {
      const int channel = b * block + lane;
      const float* row = weights + static_cast<size_t>(channel) * shape.in_channels;
      for (int c = 0; c < shape.in_channels; ++c) packed[static_cast<size_t>(c) * block + lane] = row[c];
      terms[2 * block + lane] = bias != nullptr ? bias[channel] : 0;
    }
    inner_product_normalize(block, layout.in_blocks * block, packed, {terms, terms + block});
  }
}

}  // namespace softneuro
