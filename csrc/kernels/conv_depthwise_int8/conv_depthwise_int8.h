// Depthwise convolution of bytes whose channels are side by side: unsigned ones with signed weights. Sums are exact,
// and so the same at every level.
//
//   dst[y][x][c] = act(scale[c] * (start[c] + sum of src[..][c] * weight[c][tap]) + bias[c] + residual[y][x][c])
//
// over all taps. Outside the image src is `src_zero`; start takes off what that zero point adds.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/arch.h"
#include "kernels/epilogue.h"

namespace softneuro {

struct ConvDepthwiseInt8 {
  int channels = 0;
  int h = 0, w = 0, oh = 0, ow = 0;
  int kh = 1, kw = 1, sh = 1, sw = 1, dh = 1, dw = 1, pt = 0, pl = 0;
  const uint8_t* src = nullptr;
  const uint8_t* src_end = nullptr;  // nothing from here on is read
  uint8_t src_zero = 0;
  const int8_t* weights = nullptr;  // of pack; 64-byte aligned
  bool narrow = false;              // as GemmInt8 has it
  const int32_t* start = nullptr;   // in the order of channel_at
  Epilogue epilogue = {};  // scale and bias, which are both there, in that order, too; the residual's memory is its own
  bool large = false;      // some results may be beyond 2^30 steps
  void* dst = nullptr;
};

struct ConvDepthwiseInt8Kernels {
  int block;  // channels of a block
  // Blocks [block_begin, block_end) of channels / block, rounded up; rows [row_begin, row_end) of outputs.
  void (*run)(const ConvDepthwiseInt8&, int block_begin, int block_end, int row_begin, int row_end);
};

// Null where this build or machine lacks the level.
const ConvDepthwiseInt8Kernels* conv_depthwise_int8_kernels(Isa isa);

// Weights of whole blocks, zeros behind the last channel, from weights[channels][kh][kw].
size_t conv_depthwise_int8_packed_bytes(int channels, int kh, int kw, int block);
void conv_depthwise_int8_pack(int channels, int kh, int kw, int block, const int8_t* weights, int8_t* packed);
// The channel at each place of the packed start, scale and bias: places of a block are its quads' lanes.
int conv_depthwise_int8_channel_at(int place, int block);

}  // namespace softneuro
