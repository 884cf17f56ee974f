// linear_blocks: linear, with weights of 4 or 8 bits, of which blocks along a row share a scale and a zero point.
#pragma once

#include "layers/linear/linear.h"

namespace softneuro {

struct LinearBlocksParams : LinearParams {
  int bits = 4, block = 32;
  int64_t blocks = 0;  // of a row
  bool zeros = false;  // whether there are zero points; else they are 2^(bits - 1)
};

// Throws Error about the first thing that is wrong with attributes, weights or the input.
LinearBlocksParams linear_blocks_params(const Layer& layer, const TensorDesc& in);

// Number `index` of a list of unsigned integers that are packed from the lower bits of each byte on.
inline int packed_integer(double byte, int bits, int64_t index) {
  const int all = static_cast<int>(byte);
  return bits == 8 ? all : all >> (index % 2 * 4) & 15;
}

}  // namespace softneuro
