// Depthwise convolution (one filter per channel) on blocked blobs, any kernel size, stride, dilation and padding.
//
//   dst[k][y][x] = act(bias[k] + residual[k][y][x] + scale[k]
//                      * sum over r, s of w[k][r][s] * src[k][y*stride_h + r*dilation_h - pad_top][x*... + s*...])
//
// Taps outside the image contribute nothing. c is the level's block (isa_block): 16, 8 or 4.
#pragma once

#include <cstddef>

#include "base/arch.h"
#include "kernels/epilogue.h"

namespace softneuro {

struct ConvDepthwiseArgs {
  int channels = 0, h = 0, w = 0, out_h = 0, out_w = 0;
  int kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  int pad_top = 0, pad_left = 0;   // padding below and to the right follows from out_h, out_w
  const float* src = nullptr;      // [channels / c][h][w][c], the last block padded with zeros
  const float* weights = nullptr;  // of conv_depthwise_pack
  void* dst = nullptr;             // [channels / c][out_h][out_w][c]; lanes past the channels are written as zero
  Epilogue epilogue;               // bias and scale: channels rounded up to c
  float* sums = nullptr;           // scratch for two rows of dst's block; not needed where epilogue.is_float32()
  // Where src and dst hold bands of rows: the images' rows at which they start, and elements from channel block to
  // channel block (0: of whole images). A residual lies as dst.
  int src_row = 0, dst_row = 0;
  size_t src_plane = 0, dst_plane = 0;
};

struct ConvDepthwiseKernels {
  int block;  // c
  // Channel blocks [block_begin, block_end), output rows [row_begin, row_end). Pairs of rows run best.
  void (*run)(const ConvDepthwiseArgs&, int block_begin, int block_end, int row_begin, int row_end);
};

// Null where this build or machine lacks the level.
const ConvDepthwiseKernels* conv_depthwise_kernels(Isa isa);

size_t conv_depthwise_packed_size(int channels, int kernel_h, int kernel_w, int block);  // floats
// Packs [channels][kernel_h][kernel_w] to [channels / c][kernel_h][kernel_w][c].
void conv_depthwise_pack(int channels, int kernel_h, int kernel_w, int block, const float* weights, float* packed);

}  // namespace softneuro
