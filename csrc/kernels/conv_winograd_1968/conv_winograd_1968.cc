#include "kernels/conv_winograd_1968/conv_winograd_1968.h"

#include <algorithm>

#include "kernels/conv_winograd_1968/layout.h"
#include "kernels/levels.h"
#include "kernels/winograd_1968/pairs.h"

namespace softneuro {

SN_KERNEL_LIST(ConvWinograd1968Kernels, conv_winograd_1968, SN_VECTOR_LEVELS)
const ConvWinograd1968Kernels* conv_winograd_1968_kernels(Isa isa) {
  return find_kernels(conv_winograd_1968_list, isa);
}

size_t conv_winograd_1968_packed_size(const PointwiseShape& shape, int block) {
  const ConvWinograd1968Layout layout(shape, block);
  return static_cast<size_t>(layout.out_blocks) * layout.panel;
}

void conv_winograd_1968_pack(const PointwiseShape& shape, int block, const float* weights, const float* bias,
                             float* packed) {
  const ConvWinograd1968Layout layout(shape, block);
  std::fill_n(packed, conv_winograd_1968_packed_size(shape, block), 0.F);
  for (int b = 0; b < layout.out_blocks; ++b, packed += layout.panel) {
    float* const terms = packed + layout.products;
    const int lanes = std::min(block, shape.out_channels - b * block);
    for (int lane = 0; lane < lanes; ++lane) {
      const int channel = b * block + lane;
      const float* row = weights + static_cast<size_t>(channel) * shape.in_channels;
      for (int c = 0; c < shape.in_channels; ++c) packed[static_cast<size_t>(c) * block + lane] = row[c];
      terms[2 * block + lane] = bias != nullptr ? bias[channel] : 0;
    }
    winograd_1968_normalize(block, layout.in_blocks * block, packed, {terms, terms + block});
  }
}

}  // namespace softneuro
