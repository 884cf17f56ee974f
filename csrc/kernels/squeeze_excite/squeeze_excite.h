// Squeeze and excite on blocked blobs: every channel is scaled by what two small layers make of all channels' means.
//
//   mean[k]   = (sum over pixels of src[k]) / pixels
//   hidden[s] = squeeze_activation(squeeze_bias[s] + sum over k of squeeze[s][k] * mean[k])
//   gate[k]   = excite_activation(excite_bias[k] + sum over s of excite[k][s] * hidden[s])
//   dst[k]    = act(src[k] * gate[k] + residual[k])
//
// In two halves, as all means must be there before the first gate: each may be dealt to threads by channel blocks. c is
// the level's block (isa_block).
#pragma once

#include <cstddef>

#include "base/arch.h"
#include "kernels/epilogue.h"

namespace softneuro {

struct SqueezeExciteArgs {
  int channels = 0, hidden = 0, pixels = 0;
  const float* squeeze = nullptr;       // [hidden / c][channels][c]
  const float* squeeze_bias = nullptr;  // hidden rounded up to c
  const float* excite = nullptr;        // [channels / c][hidden][c]
  const float* excite_bias = nullptr;   // channels rounded up to c
  Activation squeeze_activation, excite_activation;
  const float* src = nullptr;  // [channels / c][pixels][c], the last block padded with zeros
  float* dst = nullptr;        // as src, and maybe src itself; lanes past the channels are written as zero
  Epilogue epilogue;           // no bias
};

struct SqueezeExciteKernels {
  int block;  // c
  // Channel blocks [block_begin, block_end): their means (scratch: as many blocks of floats) and what these add to the
  // hidden sums, without the bias: hidden rounded up to c floats.
  void (*squeeze)(const SqueezeExciteArgs&, int block_begin, int block_end, float* scratch, float* part);
  // `parts`: results of `count` calls of squeeze, one behind the other, which are added in this order. Scratch: hidden
  // rounded up to c floats.
  void (*excite)(const SqueezeExciteArgs&, const float* parts, int count, float* scratch, int block_begin,
                 int block_end);
};

// Null where this build or machine lacks the level.
const SqueezeExciteKernels* squeeze_excite_kernels(Isa isa);

// Either matrix: from [rows][columns] to [rows / c][columns][c], padded with zeros.
void squeeze_excite_pack(int rows, int columns, int block, const float* weights, float* packed);

}  // namespace softneuro
