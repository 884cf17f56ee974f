// Direct convolution from a row-major blob with few channels (an image) to a blocked one, any kernel size, stride,
// dilation and padding.
//
//   dst[k][y][x] = act(bias[k] + residual[k][y][x]
//                      + sum over c, r, s of w[k][c][r][s] * src[c][y*stride_h + r*dilation_h - pad_top][x*... +
//                      s*...])
//
// Taps outside the image contribute nothing. c is the level's block (isa_block): 16, 8 or 4. Input channels may be any
// number; no lane is wasted on absent ones, which is what this kernel is for.
#pragma once

#include <cstddef>

#include "base/arch.h"
#include "kernels/epilogue.h"

namespace softneuro {

struct ConvFirstArgs {
  int in_channels = 0, out_channels = 0, h = 0, w = 0, out_h = 0, out_w = 0;
  int kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  int pad_top = 0, pad_left = 0;  // padding below and to the right follows from out_h, out_w
  int row_block = 4;              // output rows for which the edges (see generic.h) or all of src is copied at once
  const float* src = nullptr;     // [in_channels][h][w]
  const void* weights = nullptr;  // as the kernel's own packing makes them, 64-byte aligned
  float* dst = nullptr;           // [out_channels / c][out_h][out_w][c]; lanes past the channels are written as zero
  Epilogue epilogue;              // bias: out_channels rounded up to c, floats; residual: as dst
};

struct ConvFirstKernels {
  int block;     // c
  int max_tile;  // pixels per step: widths that are multiples of it run best
  // Bytes of scratch that run needs, 64-byte aligned. Looks at sizes only.
  size_t (*scratch_bytes)(const ConvFirstArgs&);
  // Output rows [row_begin, row_end), all channels.
  void (*run)(const ConvFirstArgs&, int row_begin, int row_end, void* scratch);
};

// Null where this build or machine lacks the level.
const ConvFirstKernels* conv_first_kernels(Isa isa);

size_t conv_first_packed_size(const ConvFirstArgs& sizes, int block);  // floats
// Packs [out_channels][in_channels][kernel_h][kernel_w] to [pair of blocks][in channel][r][s][lane of pair].
void conv_first_pack(const ConvFirstArgs& sizes, int block, const float* weights, float* packed);

}  // namespace softneuro
