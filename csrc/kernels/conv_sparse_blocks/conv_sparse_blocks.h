// Convolution on blocked blobs whose weights are zero a whole vector of output channels at a time: what conv_direct
// computes, without those input channels and taps of a block of outputs that have no weight there.
//
// Zeros count as in a dense sum: where one meets a value of the image that is not finite, the output is NaN.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/arch.h"
#include "kernels/conv_direct/conv_direct.h"

namespace softneuro {

struct ConvSparseBlocks {
  ConvDirectShape shape;
  int band;                // output rows that share a copy of src; pixels where shape.pointwise(), which copies none
  const float* src;        // as conv_direct has it
  const int32_t* starts;   // block i of outputs has the vectors of weights [starts[i], starts[i + 1])
  const int32_t* offsets;  // of place, for each of these
  const float* weights;    // a vector of each
  float* dst;              // as conv_direct has it
  Epilogue epilogue;       // bias is padded to whole blocks
  // Floats of dst from pixel to pixel and from block to block where it is not blocked, all of whose blocks are whole
  // then, and where shape.pointwise(); 0: it is.
  size_t dst_pixel = 0, dst_block = 0;
};

struct ConvSparseBlocksKernels {
  int block;
  // Where taps, as conv_sparse_blocks_pack makes them, are from an output's first one on.
  void (*place)(const ConvDirectShape&, int band, const int32_t* taps, int count, int32_t* offsets);
  // Rows of so many values, `stride` floats apart, to src of a pointwise shape with so many pixels: the first of them.
  void (*block_rows)(const float* src, ptrdiff_t stride, int rows, int channels, int pixels, float* dst);
  // Bytes of scratch, 64-byte aligned; none for shape.pointwise().
  size_t (*scratch_bytes)(const ConvDirectShape&, int band);
  // Blocks [block_begin, block_end) of all groups' outputs, output rows [row_begin, row_end), or pixels where
  // shape.pointwise().
  void (*run)(const ConvSparseBlocks&, int block_begin, int block_end, int row_begin, int row_end, void* scratch);
};

// Null where this build or machine lacks the level.
const ConvSparseBlocksKernels* conv_sparse_blocks_kernels(Isa isa);

// Blocks of outputs of all groups.
int conv_sparse_blocks_count(const ConvDirectShape& shape, int block);
// The vectors of weights that are not all zero, with the tap of each: how many these are. It only counts where the
// others are null.
int64_t conv_sparse_blocks_pack(const ConvDirectShape& shape, int block, const float* weights, int32_t* starts,
                                int32_t* taps, float* packed);

}  // namespace softneuro
