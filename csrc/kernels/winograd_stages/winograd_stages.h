// Winograd convolution in stages over whole blobs (kernels/winograd has the schedule fused per block of tiles, and the
// mathematics): every tile is encoded to a row of one matrix per position, the products are matrix products of any
// kind, and their rows are decoded to the output. One group, stride 1, channels a multiple of the level's block.
#pragma once

#include "kernels/winograd/winograd.h"

namespace softneuro {

struct WinogradEncodeArgs {
  WinogradShape shape;
  const float* src;   // images of [in_channels / c][h][w][c]
  int64_t src_image;  // floats from one image to the next
  float* dst;         // [position][tile][in_channels], 64-byte aligned as dst_position is
  int64_t dst_position;
  bool past_caches = false;  // stores go to memory at once: for matrices that would not stay in a cache
};

struct WinogradDecodeArgs {
  WinogradShape shape;
  const float* src;  // [position][tile][out_channels]
  int64_t src_position;
  float* dst;  // images of [out_channels / c][out_h][out_w][c]
  int64_t dst_image, residual_image;
  Epilogue epilogue;  // bias: out_channels floats
};

struct WinogradStages {
  int block;  // c
  // Tiles [tile_begin, tile_end) of shape.tiles(), for sizes that WinogradKernels::has_transform knows.
  void (*encode)(const WinogradEncodeArgs&, int tile_begin, int tile_end);
  void (*decode)(const WinogradDecodeArgs&, int tile_begin, int tile_end);
};

// Null where this build or machine lacks the level.
const WinogradStages* winograd_stages(Isa isa);

// The products' right-hand sides [position][out channel][in channel], from [out channel][in channel][kernel_h]
// [kernel_w]: transformed in double.
void winograd_position_weights(const WinogradShape& shape, const WinogradKernels& kernels, const float* weights,
                               float* dst);

}  // namespace softneuro
