// Winograd convolution of bytes whose transformed inputs and weights are numbers of 16 bits: kernels of 3x3, stride 1,
// dilation 1, tiles of two or four outputs along each axis. Blobs have their channels side by side.
//
//   dst[y][x][k] = act(scale[k] * sum over c, r, s of w[k][c][r][s] * (src[y+r-pad_top][x+s-pad_left][c] - src_zero) +
//   bias[k] + residual[y][x][k])
//
// The points are 0, 1, -1, and 2, -2 for four outputs (Lavin and Gray, "Fast Algorithms for Convolutional Neural
// Networks"). With them B' has whole numbers, and what it makes of bytes is below 2^15: inputs are transformed exactly.
// Transformed weights are rounded to whole numbers of a scale for each position and output channel, the finest for
// which no sum of a chunk of channels leaves 32 bits. So weights have some 14 bits for four outputs, and all 16 for
// two.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/arch.h"
#include "kernels/epilogue.h"
#include "kernels/weight_rows.h"
#include "kernels/winograd/winograd.h"

namespace softneuro {

// Input channels whose products are summed in integers, at most; sums of these are floats. Half as many make weights a
// bit longer, and the end of sums twice as frequent.
constexpr int winograd_int16_chunk = 64;

// The shape has tiles of 2 or 4 along each axis, 3x3 taps, strides of 1, and `bytes`.
struct WinogradInt16Args {
  WinogradShape shape;
  int block = 28;   // tiles that are encoded, multiplied and decoded together; every value is right
  const void* src;  // images of bytes [h][w][groups * in_channels]
  int64_t src_image;
  int src_zero = 0;      // 0 to 255
  const float* weights;  // of winograd_int16_pack, 64-byte aligned
  void* dst;             // images like src's
  int64_t dst_image, residual_image;
  Epilogue epilogue;  // scale and bias: winograd_bias_size floats
};

struct WinogradInt16Kernels {
  int block;      // lanes of 32 bits: two input channels each, or an output channel
  int max_group;  // tiles per step of the products: blocks that are multiples of it run best
  size_t (*scratch_bytes)(const WinogradShape&, int block);  // of run, 64-byte aligned
  // Panels [panel_begin, panel_end) of winograd_panels, tiles [tile_begin, tile_end) of shape.tiles().
  void (*run)(const WinogradInt16Args&, int panel_begin, int panel_end, int tile_begin, int tile_end, void* scratch);
};

// Null where this build or machine lacks the level.
const WinogradInt16Kernels* winograd_int16_kernels(Isa isa);

bool winograd_int16_has_tile(int tile);

// Floats, or pairs of weights, to [panel][position][pair of in channels][lane of panel], where a position's pairs are
// followed by what one unit of its sums is, by lane.
size_t winograd_int16_packed_size(const WinogradShape& shape, int block);
void winograd_int16_pack(const WinogradShape& shape, int block, const WeightRows& rows, float* packed);

// Relative L2 error of sums on data without structure: what the rounding of transformed weights does.
double winograd_int16_error(const WinogradShape& shape);

}  // namespace softneuro
