// Products of a few vectors with weights of 4 or 8 bits, of which blocks along a row share a scale and a zero point.
//
//   dst[i][n] = act(sum over k of x[i][k] * scale[n][k / block] * (integer[n][k] - zero[n][k / block]) + bias[n] +
//                   residual[i][n])
//
// Integers become floats in registers, so that nothing is rounded that a product with float32 weights would not round.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/arch.h"
#include "kernels/dot_vectors.h"

namespace softneuro {

struct DotBlocks : DotVectors {
  static constexpr int most_vectors = 16;
  static constexpr bool has_bits(int bits) { return bits == 4 || bits == 8; }
  static constexpr bool has_block(int block) { return block >= 16 && block <= 4096 && (block & (block - 1)) == 0; }

  const int32_t* weights;  // as pack makes them
  int n, k;                // outputs, floats of a vector
  int bits, block;         // has_bits, has_block
  bool zeros;              // whether zero points are packed; else they are 2^(bits - 1)
};

// Weights as models have them.
struct WeightBlocks {
  const uint8_t* integers;  // [n][blocks of a row][block * bits / 8], of two in a byte the first in its lower half
  const float* scales;      // [n][blocks of a row]
  const uint8_t* zeros;     // [n][bytes of a row's zero points, packed like integers]; null: 2^(bits - 1)
};

struct DotBlocksKernels {
  int lanes;  // outputs of a panel
  // Packs all panels. It reads only the sizes in p.
  void (*pack)(const DotBlocks& p, const WeightBlocks& from, int32_t* packed);
  // Panels [begin, end).
  void (*run)(const DotBlocks& p, int begin, int end);
  // Panels [begin, end), of which floats [k_begin, k_end), as [float][lane of all these panels], zero past output n.
  // k_begin is the first of a block.
  void (*decode)(const DotBlocks& p, int begin, int end, int k_begin, int k_end, float* to);
};

// Null where this build or machine lacks the level.
const DotBlocksKernels* dot_blocks_kernels(Isa isa);

// Integers of the packing.
size_t dot_blocks_packed_size(const DotBlocks& p, int lanes);

}  // namespace softneuro
