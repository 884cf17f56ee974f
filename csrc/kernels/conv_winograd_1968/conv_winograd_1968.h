// 1x1 convolution on blocked blobs, and products of rows with weights, with additions in the place of multiplications
// (kernels/winograd_1968/pairs.h): each pixel is scaled when it is prepared, each output channel's weights when they
// are packed.
//
//   dst[k][y][x] = act(bias[k] + residual[k][y][x] + sum over c of w[k][c] * src[c][y*stride_h][x*stride_w])
#pragma once

#include <cstddef>

#include "base/arch.h"
#include "kernels/epilogue.h"
#include "kernels/pointwise_shape.h"

namespace softneuro {

struct ConvWinograd1968Args {
  PointwiseShape shape;
  int row_block;         // pixels that are prepared at most
  const float* src;      // [in_channels / c][h][w][c], the last block padded with zeros
  const float* weights;  // of pack, 64-byte aligned
  float* dst;            // [out_channels / c][out_h][out_w][c]; lanes past the channels are written as zero
  Epilogue epilogue;     // the bias is in the packing
  // Matrices instead of blobs: src is [pixel][in_channels], dst and the residual are [pixel][out_channels], with so
  // many floats from row to row; of the shape only the channels count. 0: blobs.
  ptrdiff_t src_row = 0, dst_row = 0;
  // Floats from channel block to channel block where blobs are not dense; 0: dense.
  size_t src_plane = 0, dst_plane = 0;
  // Blobs of stride 1 only: src is scratch, too, whose pixels are prepared where they are.
  bool in_place = false;
};

struct ConvWinograd1968Kernels {
  int block;  // c
  // Bytes of scratch that the others need, 64-byte aligned.
  size_t (*scratch_bytes)(const ConvWinograd1968Args&);
  // Pixels [pixel, pixel + count) of out_h * out_w into scratch; count <= row_block.
  void (*prepare)(const ConvWinograd1968Args&, int pixel, int count, void* scratch);
  // Output channel blocks [begin, end) of the pixels that were prepared last. What becomes of a pixel does not depend
  // on the others.
  void (*run)(const ConvWinograd1968Args&, int begin, int end, int pixel, int count, void* scratch);
};

// Null where this build or machine lacks the level.
const ConvWinograd1968Kernels* conv_winograd_1968_kernels(Isa isa);

// Floats of the packing.
size_t conv_winograd_1968_packed_size(const PointwiseShape& shape, int block);
// Packs rows of weights, [out_channels][in_channels], and the bias (null: none).
void conv_winograd_1968_pack(const PointwiseShape& shape, int block, const float* weights, const float* bias,
                             float* packed);

}  // namespace softneuro
