// Convolution on blocked or channels-last blobs by products of bfloat16 tiles, with each float32 split into two or
// three bfloat16 (Henry, Tang and Heinecke, "Leveraging the bfloat16 Artificial Intelligence Datatype For
// Higher-Precision Computations", 2019):
//
//   dst[k][y][x] = act(bias[k] + residual[k][y][x]
//                      + sum over c, i, j of w[k][c][i][j] * src[c][y*stride_h + i*dilation_h - pad_top][...])
//   w * x ~ w1 * x1 + w1 * x2 + w2 * x1                                     bf16x3: w2 * x2 is below 2^-16 of it
//   w * x ~ w1 * x1 + w1 * x2 + w2 * x1 + w2 * x2 + w1 * x3 + w3 * x1       bf16x6: the others are below 2^-24
//
// A band of output rows at a time, its input is split into planes of one row of memory each, in which what a tap reads
// for consecutive outputs is consecutive: outputs are counted through rows that are as long as a plane's, those past a
// row's end computed for nothing. With a stride, samples of equal remainder make up a plane (a phase). So any tap of
// any convolution is a tile that begins at another place.
#pragma once

#include <cstddef>

#include "base/arch.h"
#include "kernels/epilogue.h"

namespace softneuro {

// One dimension.
struct ConvBfloat16Axis {
  int in = 0, out = 0, kernel = 1, stride = 1, dilation = 1, pad = 0;  // pad: before the first sample

  // Tap i reads phase (i % period) from sample out + (i * dilation) / stride on.
  [[gnu::always_inline]] constexpr int period() const {
    int a = stride, b = dilation % stride;
    while (b != 0) {
      const int rest = a % b;
      a = b;
      b = rest;
    }
    return stride / a;
  }
  [[gnu::always_inline]] constexpr int phases() const { return kernel < period() ? kernel : period(); }
  [[gnu::always_inline]] constexpr int offset(int tap) const { return tap * dilation / stride; }
  // Samples of a phase that `outputs` consecutive outputs read.
  [[gnu::always_inline]] constexpr int samples(int outputs) const { return outputs + offset(kernel - 1); }
};

struct ConvBfloat16Shape {
  int parts = 2;  // of each value: 2 or 3
  int panel = 2;  // output blocks that share a pass over the input: 1 or 2
  int in_channels = 0, out_channels = 0;
  ConvBfloat16Axis y, x;

  [[gnu::always_inline]] constexpr int taps() const { return y.kernel * x.kernel; }
  [[gnu::always_inline]] constexpr int phases() const { return y.phases() * x.phases(); }
};

struct ConvBfloat16Args {
  ConvBfloat16Shape shape;
  int rows = 1;  // output rows of a band: any is right, speed differs
  // Input channels that are split at a time, a multiple of 2c: dst holds the sums of those before. 0: all of them.
  int depth = 0;
  const float* src;     // [in_channels / c][y.in][x.in][c], the last block padded with zeros
  const void* weights;  // of pack, 64-byte aligned
  float* dst;           // [out_channels / c][y.out][x.out][c]; lanes past the channels are written as zero
  // Channels-last: floats from pixel to pixel of src and of dst. 0: blocked as above.
  size_t src_pixel = 0, dst_pixel = 0;
  // Blocked: floats from channel block to channel block; 0: of whole images. A residual lies as dst.
  size_t src_plane = 0, dst_plane = 0;
  Epilogue epilogue;  // bias: out_channels rounded up to c, never null
};

struct ConvBfloat16Kernels {
  int block;  // c
  // Packs rows of weights, [out_channels][in_channels][taps], to conv_bfloat16_packed_bytes, 64-byte aligned.
  void (*pack)(const ConvBfloat16Shape&, const float* weights, void* packed);
  // Bytes of scratch that run needs, 64-byte aligned; of the arguments only shape, rows and depth count.
  size_t (*scratch_bytes)(const ConvBfloat16Args&);
  // Panels [panel_begin, panel_end) of conv_bfloat16_panels, output rows [row_begin, row_end).
  void (*run)(const ConvBfloat16Args&, int panel_begin, int panel_end, int row_begin, int row_end, void* scratch);

  // What run does with a column of pixels (1x1 kernels, no padding, images of one column), in two steps, for what comes
  // between layers. Planes are for args.rows rows from row `first` on; sums: of one thread, contents undefined. All
  // memory 64-byte aligned.
  size_t (*planes_bytes)(const ConvBfloat16Shape&, int rows);
  size_t sums_bytes;
  // Rows [row_begin, row_end) of pairs of input blocks [pair_begin, pair_end) to the planes.
  void (*split_column)(const ConvBfloat16Args&, int pair_begin, int pair_end, int first, int row_begin, int row_end,
                       void* planes);
  // Panels [panel_begin, panel_end) of rows [row_begin, row_end), all of whose input is in the planes.
  void (*multiply_column)(const ConvBfloat16Args&, int panel_begin, int panel_end, int first, int row_begin,
                          int row_end, const void* planes, void* sums);
};

// Null where this build or machine lacks the level.
const ConvBfloat16Kernels* conv_bfloat16_kernels(Isa isa);

int conv_bfloat16_panels(const ConvBfloat16Shape& shape, int block);
size_t conv_bfloat16_packed_bytes(const ConvBfloat16Shape& shape, int block);

}  // namespace softneuro
