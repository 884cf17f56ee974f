// Convolution on blocked blobs by products of bfloat16 tiles, with each float32 split into two bfloat16 (Henry, Tang
// and Heinecke, "Leveraging the bfloat16 Artificial Intelligence Datatype For Higher-Precision Computations", 2019):
//
//   dst[k][y][x] = act(bias[k] + residual[k][y][x]
//                      + sum over c, i, j of w[k][c][i][j] * src[c][y*stride_h + i*dilation_h - pad_top][...])
//   w * x = (w1 + w2) * (x1 + x2) ~ w1 * x1 + w1 * x2 + w2 * x1, of which w2 * x2 is below 2^-16
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
struct ConvBf16x3Axis {
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

struct ConvBf16x3Shape {
  int in_channels = 0, out_channels = 0;
  ConvBf16x3Axis y, x;

  [[gnu::always_inline]] constexpr int taps() const { return y.kernel * x.kernel; }
};

struct ConvBf16x3Args {
  ConvBf16x3Shape shape;
  int rows = 1;         // output rows of a band: any is right, speed differs
  const float* src;     // [in_channels / c][y.in][x.in][c], the last block padded with zeros
  const void* weights;  // of conv_bf16x3_pack, 64-byte aligned
  float* dst;           // [out_channels / c][y.out][x.out][c]; lanes past the channels are written as zero
  Epilogue epilogue;    // bias: out_channels rounded up to c, never null
};

struct ConvBf16x3Kernels {
  int block;  // c
  // Bytes of scratch that run needs, 64-byte aligned.
  size_t (*scratch_bytes)(const ConvBf16x3Shape&, int rows);
  // Panels [panel_begin, panel_end) of conv_bf16x3_panels, output rows [row_begin, row_end).
  void (*run)(const ConvBf16x3Args&, int panel_begin, int panel_end, int row_begin, int row_end, void* scratch);
};

// Null where this build or machine lacks the level.
const ConvBf16x3Kernels* conv_bf16x3_kernels(Isa isa);

// Pairs of output blocks.
int conv_bf16x3_panels(const ConvBf16x3Shape& shape, int block);
size_t conv_bf16x3_packed_bytes(const ConvBf16x3Shape& shape, int block);
// From rows of weights, [out_channels][in_channels][taps].
void conv_bf16x3_pack(const ConvBf16x3Shape& shape, int block, const float* weights, void* packed);

}  // namespace softneuro
