#include "kernels/conv_strassen/conv_strassen.h"

#include "kernels/integers.h"
#include "kernels/levels.h"

namespace softneuro {

SN_KERNEL_LIST(ConvStrassenKernels, conv_strassen, SN_VECTOR_LEVELS)
const ConvStrassenKernels* conv_strassen_kernels(Isa isa) { return find_kernels(conv_strassen_list, isa); }

int conv_strassen_panels(const PointwiseShape& shape, int block, int panel) {
  const ConvStrassenBlocks blocks(shape, block);
  return ceil_div(blocks.out_half, panel) + blocks.out_rest;
}

size_t conv_strassen_packed_size(const PointwiseShape& shape, int block) {
  const ConvStrassenBlocks blocks(shape, block);
  const auto pairs = static_cast<size_t>(blocks.out_half), in_half = static_cast<size_t>(blocks.in_half);
  const size_t squares = pairs * (7 * in_half + 2 * static_cast<size_t>(blocks.in_rest)) +
                         static_cast<size_t>(blocks.out_rest) * static_cast<size_t>(blocks.in());
  return squares * static_cast<size_t>(block) * static_cast<size_t>(block);
}

namespace {

// Factors of b11, b12, b21, b22, in the order in which the kernels use the sums.
constexpr int products[7][4] = {
    {1, 0, 0, 0},    // b11
    {0, 0, 1, 0},    // b21
    {1, -1, 0, 1},   // t2 = b22 - t1
    {0, -1, 0, 1},   // t3 = b22 - b12
    {-1, 1, 0, 0},   // t1 = b12 - b11
    {0, 0, 0, 1},    // b22
    {-1, 1, 1, -1},  // -t4 = b21 - t2
};

}  // namespace

void conv_strassen_pack(const PointwiseShape& shape, int block, int panel, const float* weights, float* packed) {
  const ConvStrassenBlocks blocks(shape, block);
  const int in_half = blocks.in_half * block, out_half = blocks.out_half * block;
  const auto at = [&](int k, int c) -> double {
    const auto index = static_cast<size_t>(k) * static_cast<size_t>(shape.in_channels) + static_cast<size_t>(c);
    return k < shape.out_channels && c < shape.in_channels ? weights[index] : 0;
  };
  // Some input channels by the lanes of some output channels.
  const auto plain = [&](int k0, int k1, int c0, int c1) {
    for (int c = c0; c < c1; ++c) {
      for (int k = k0; k < k1; ++k) *packed++ = static_cast<float>(at(k, c));
    }
  };
  const int panels = ceil_div(blocks.out_half, panel);
  for (int index = 0; index < panels; ++index) {
    const int begin = blocks.out_half * index / panels * block, end = blocks.out_half * (index + 1) / panels * block;
    for (const auto& factors : products) {
      for (int c = 0; c < in_half; ++c) {
        for (int k = begin; k < end; ++k) {
          const double quarters[] = {at(k, c), at(out_half + k, c), at(k, in_half + c), at(out_half + k, in_half + c)};
          double value = 0;
          for (int q = 0; q < 4; ++q) {
            if (factors[q] != 0) value += factors[q] * quarters[q];  // not 0 * Inf
          }
          *packed++ = static_cast<float>(value);
        }
      }
    }
    if (blocks.in_rest == 0) continue;
    plain(begin, end, 2 * in_half, 2 * in_half + block);
    plain(out_half + begin, out_half + end, 2 * in_half, 2 * in_half + block);
  }
  if (blocks.out_rest != 0) plain(2 * out_half, 2 * out_half + block, 0, blocks.in() * block);
}

}  // namespace softneuro
