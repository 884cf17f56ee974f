// Direct convolution on row-major blobs, vectors along the width; any kernel size, stride, dilation, padding and
// groups.
//
//   dst[k][y][x] = act(bias[k] + residual[k][y][x]
//                      + sum over c, r, s of w[k][c][r][s] * src[c][y*stride_h + r*dilation_h - pad_top][x*... +
//                      s*...])
//
// Taps outside the image contribute nothing. For few channels per group and wide maps; a matrix product serves others.
#pragma once

#include <cstddef>

#include "base/arch.h"
#include "kernels/epilogue.h"

namespace softneuro {

struct ConvNchwShape {
  int groups = 1;
  int in_channels = 0, out_channels = 0;  // of one group
  int h = 0, w = 0, out_h = 0, out_w = 0;
  int kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  int pad_top = 0, pad_left = 0;  // padding below and to the right follows from out_h, out_w
};

struct ConvNchwArgs {
  ConvNchwShape shape;
  int row_block = 4;               // output rows per copy of src
  const float* src = nullptr;      // [groups * in_channels][h][w]
  const float* weights = nullptr;  // of conv_nchw_pack
  float* dst = nullptr;            // [groups * out_channels][out_h][out_w]
  Epilogue epilogue;               // bias: one float per output channel
};

// Output channels of a group that are computed together.
inline constexpr int conv_nchw_panel = 4;

struct ConvNchwKernels {
  // Bytes of scratch that run needs, 64-byte aligned.
  size_t (*scratch_bytes)(const ConvNchwShape&, int row_block);
  // Panels [panel_begin, panel_end) of conv_nchw_panels, output rows [row_begin, row_end).
  void (*run)(const ConvNchwArgs&, int panel_begin, int panel_end, int row_begin, int row_end, void* scratch);
};

// Null where this build or machine lacks the level.
const ConvNchwKernels* conv_nchw_kernels(Isa isa);

// Panels never mix groups: groups * ceil(out_channels / conv_nchw_panel).
int conv_nchw_panels(const ConvNchwShape& shape);
size_t conv_nchw_packed_size(const ConvNchwShape& shape);  // floats
// Packs [groups * out_channels][in_channels][kernel_h][kernel_w] to [panel][in channel][r][s][channel of the panel].
void conv_nchw_pack(const ConvNchwShape& shape, const float* weights, float* packed);

}  // namespace softneuro
