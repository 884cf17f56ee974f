// Direct convolution on blocked blobs, any kernel size, stride, dilation, padding; groups of whole channel blocks.
//
//   dst[k][y][x] = act(bias[k] + residual[k][y][x] + scale[k]
//                      * sum over c, r, s of w[k][c][r][s] * src[c][y*stride_h + r*dilation_h - pad_top][x*... +
//                      s*...])
//
// Taps outside the image contribute nothing. c is the level's block (isa_block): 16, 8 or 4.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/arch.h"
#include "kernels/epilogue.h"
#include "kernels/weight_rows.h"

namespace softneuro {

struct ConvDirectShape {
  int groups = 1;
  int in_channels = 0, out_channels = 0;  // of one group; with groups > 1 both are multiples of c
  int h = 0, w = 0, out_h = 0, out_w = 0;
  int kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  int pad_top = 0, pad_left = 0;  // padding below and to the right follows from out_h, out_w

  // One pixel of src for one of dst: the plane is then one row of pixels, nothing is copied and run_pointwise applies.
  bool pointwise() const {
    return kernel_h == 1 && kernel_w == 1 && stride_h == 1 && stride_w == 1 && pad_top == 0 && pad_left == 0 &&
           out_h == h && out_w == w;
  }
};

// How the work is cut; every value is right for every shape, speed differs.
struct ConvDirectTiling {
  int panel = 2;      // output channel blocks that share a pass over src: 1 ... max_panel
  int row_block = 4;  // output rows per copy of src (run), pixels per pass over all panels (run_pointwise)
  int c_block = 16;   // input channel blocks summed in one go; partial sums wait in dst
};

struct ConvDirectArgs {
  ConvDirectShape shape;
  ConvDirectTiling tiling;
  const float* src;      // [groups * in_channels / c][h][w][c], the last block padded with zeros
  const float* weights;  // of pack, 64-byte aligned; not read if there are rows
  // If there are rows, each pass over a panel begins by packing it to panel_scratch: conv_direct_panel_size floats,
  // 64-byte aligned.
  WeightRows rows;
  float* panel_scratch = nullptr;
  void* dst;          // [groups * out_channels / c][out_h][out_w][c]; lanes past the channels are written as zero
  Epilogue epilogue;  // bias and scale: conv_direct_bias_size floats
  // conv_direct_sums_size floats of scratch, 64-byte aligned; not needed where epilogue.is_float32().
  float* sums = nullptr;
  // run_pointwise only: elements from channel block to channel block where the blobs are not dense; 0: dense. And
  // whether src was read before, so that fetching it into L2 would be in vain.
  size_t src_plane = 0, dst_plane = 0;
  bool src_near = false;
};

struct ConvDirectKernels {
  int block;      // c
  int max_panel;  // largest tiling.panel
  // Packs to [panel][in block][r][s][lane of c][lane of panel]: conv_direct_packed_size floats.
  void (*pack)(const ConvDirectShape&, int panel, const WeightRows&, float* packed);
  // Bytes of scratch that run needs, 64-byte aligned; 0 for run_pointwise.
  size_t (*scratch_bytes)(const ConvDirectShape&, const ConvDirectTiling&);
  // Panels [panel_begin, panel_end) of conv_direct_panels, output rows [row_begin, row_end).
  void (*run)(const ConvDirectArgs&, int panel_begin, int panel_end, int row_begin, int row_end, void* scratch);
  // Pixels [pixel_begin, pixel_end) of out_h * out_w; only where shape.pointwise().
  void (*run_pointwise)(const ConvDirectArgs&, int panel_begin, int panel_end, int pixel_begin, int pixel_end);
};

// Null where this build or machine lacks the level.
const ConvDirectKernels* conv_direct_kernels(Isa isa);

// Panels never mix groups: groups * ceil(blocks of a group's output channels / panel).
int conv_direct_panels(const ConvDirectShape& shape, int block, int panel);
size_t conv_direct_packed_size(const ConvDirectShape& shape, int block);            // floats
size_t conv_direct_panel_size(const ConvDirectShape& shape, int block, int panel);  // of one panel
// Sums of one panel and one block of rows, or of pixels.
size_t conv_direct_sums_size(const ConvDirectShape& shape, const ConvDirectTiling& tiling, int block);
size_t conv_direct_bias_size(const ConvDirectShape& shape, int block);  // floats, output channels rounded up to c

}  // namespace softneuro
