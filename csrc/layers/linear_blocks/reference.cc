#include "layers/linear_blocks/linear_blocks.h"

namespace softneuro {

void linear_blocks_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out) {
  const LinearBlocksParams p = linear_blocks_params(layer, {in[0].shape});
  const std::vector<double> weight = reference_weight(layer, "weight"), scales = reference_weight(layer, "scales");
  std::vector<double> zeros, bias(static_cast<size_t>(p.k), 0.0);
  if (p.zeros) zeros = reference_weight(layer, "zero_points");
  if (layer.find_weight("bias") != nullptr) bias = reference_weight(layer, "bias");
  const int in_byte = 8 / p.bits;
  const int64_t row_bytes = p.blocks * p.block / in_byte, row_zeros = (p.blocks + in_byte - 1) / in_byte;
  for (int64_t row = 0; row < p.rows; ++row)
    for (int64_t k = 0; k < p.k; ++k) {
      double sum = bias[static_cast<size_t>(k)];
      for (int64_t c = 0; c < p.c; ++c) {
        const int64_t block = c / p.block;
        const int value = packed_integer(weight[static_cast<size_t>(k * row_bytes + c / in_byte)], p.bits, c);
        int zero = 1 << (p.bits - 1);
        if (p.zeros) {
          zero = packed_integer(zeros[static_cast<size_t>(k * row_zeros + block / in_byte)], p.bits, block);
        }
        sum += in[0].data[row * p.c + c] * (value - zero) * scales[static_cast<size_t>(k * p.blocks + block)];
      }
      out.data[row * p.k + k] = sum;
    }
}

}  // namespace softneuro
