// Two sparse convolutions, one tile of the intermediate map at a time. Each intermediate channel m takes its turn:
//
//   t[p]  = act(bias[m] + sum over the non-zeros of m's kernel of value * src[p + tap])
//   dst[k][p - tap] += value * t[p]      for the non-zeros of the second layer that read channel m
//
// The first is a direct sparse convolution, its non-zeros by kernel; the second an inverse one, its non-zeros by
// input channel, whose taps shift the output. So one channel's tile is all that there is of the intermediate map.
//
// Strides: the intermediate map's rows and columns are sorted by their number modulo the second stride, in planes, and
// the source's columns modulo the product of both. Then neighbours in a plane are neighbours in memory on either side.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/arch.h"
#include "kernels/activation.h"

namespace softneuro {

// Non-zeros by intermediate channel: those of channel i are [begin[i], begin[i + 1]).
struct ConvPairList {
  const int64_t* begin = nullptr;
  const float* values = nullptr;
};

// The part of a tile whose pixels lie in one plane. Rows and columns are the tile's.
struct ConvPairPlane {
  int row_begin = 0, row_end = 0;        // that are wanted
  int column_begin = 0, column_end = 0;  // inside the image
  ptrdiff_t src = 0;                     // of pixel (0, 0)
  const int* taps = nullptr;             // offset of each tap of the first kernel: [in channel of group][r][s]
};

// A tap of the second kernel: the pixels of its plane that reach wanted outputs, and where.
struct ConvPairTap {
  int plane = 0;
  int row_begin = 0, row_end = 0, column_begin = 0, column_end = 0;
  ptrdiff_t dst = 0;  // of pixel (0, 0), which need not be an output
};

struct ConvPairArgs {
  // First layer. The source is padded, [channel][row][phase][column].
  const float* src = nullptr;
  ptrdiff_t src_plane = 0, src_row = 0;    // to the next channel; to the next row of a tile
  int channels = 0, first_groups = 1;      // of the intermediate map
  int first_channels = 0, first_taps = 0;  // input channels of a group; taps of a kernel, channels included
  ConvPairList first;                      // by intermediate channel, in the order of taps
  const int* first_tap = nullptr;          // of each non-zero
  const float* bias = nullptr;             // null: none
  Activation activation;
  bool src_finite = true;  // else what a zero weight reads counts, too
  // The tile: [plane][row][column].
  float* tile = nullptr;
  int tile_rows = 0, tile_columns = 0;  // columns: whole vectors
  const ConvPairPlane* planes = nullptr;
  int plane_count = 0;
  // Second layer.
  ConvPairList second;                                        // by intermediate channel, in the order of (kernel, tap)
  const int *second_kernel = nullptr, *second_tap = nullptr;  // of each non-zero
  int second_groups = 1, kernels = 0;                         // output channels of all groups
  const ConvPairTap* taps = nullptr;
  int tap_count = 0;
  float* dst = nullptr;  // sums: [kernel][row][column]
  ptrdiff_t dst_plane = 0, dst_row = 0;
};

struct ConvPairKernels {
  int lanes;
  void (*run)(const ConvPairArgs&);
};

// Null where this build or machine lacks the level.
const ConvPairKernels* conv_pair_kernels(Isa isa);

}  // namespace softneuro
