// Winograd convolution on blocked blobs: strides 1 and 2, dilation 1, any padding, groups of whole channel blocks.
//
//   dst[k][y][x] = act(bias[k] + residual[k][y][x] + sum over c, r, s of w[k][c][r][s] *
//   src[c][y*stride_h+r-pad_top][...])
//
// Output is cut in tiles of tile_h x tile_w; a tile's inputs, (tile_h - 1) * stride_h + kernel_h rows of them, are
// encoded into as many positions, at each of which the convolution is a matrix product over the channels, and the
// products are decoded (transform.h). A kernel of one row or column has one position, hence no arithmetic, along it.
// Infinities, NaN and overflow in a tile's inputs reach all its outputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/arch.h"
#include "kernels/epilogue.h"
#include "kernels/weight_rows.h"
#include "kernels/winograd/transform.h"

namespace softneuro {

constexpr int winograd_panel = 2;  // most output channel blocks that share a pass over encoded tiles

struct WinogradShape {
  int groups = 1;
  int in_channels = 0, out_channels = 0;  // of one group; with groups > 1 both are multiples of the level's block
  int images = 0, h = 0, w = 0, out_h = 0, out_w = 0;
  int kernel_h = 3, kernel_w = 3;
  int tile_h = 4, tile_w = 4;
  int pad_top = 0, pad_left = 0;
  int stride_h = 1, stride_w = 1;
  // Weights are transformed on the way to the products: fewer bytes, more arithmetic.
  bool in_passing = false;
  // Products have additions for multiplications (kernels/winograd_1968/pairs.h): each tile's positions are scaled when
  // they are encoded, each output channel's weights of a position when they are packed. Not in passing.
  bool adds = false;
  // Blobs have their channels side by side. Inputs are bytes, sums end as in gemm_int8.
  bool bytes = false;

  [[gnu::always_inline]] constexpr WinogradAxis across_rows() const { return {tile_h, kernel_h, stride_h}; }
  [[gnu::always_inline]] constexpr WinogradAxis along_rows() const { return {tile_w, kernel_w, stride_w}; }
  [[gnu::always_inline]] constexpr int positions_h() const { return (tile_h - 1) * stride_h + kernel_h; }
  [[gnu::always_inline]] constexpr int positions_w() const { return (tile_w - 1) * stride_w + kernel_w; }
  [[gnu::always_inline]] constexpr int positions() const { return positions_h() * positions_w(); }
  [[gnu::always_inline]] constexpr int weights() const { return across_rows().weights() * along_rows().weights(); }
  [[gnu::always_inline]] constexpr int tiles_h() const { return (out_h + tile_h - 1) / tile_h; }
  [[gnu::always_inline]] constexpr int tiles_w() const { return (out_w + tile_w - 1) / tile_w; }
  [[gnu::always_inline]] constexpr int tiles() const { return images * tiles_h() * tiles_w(); }
  [[gnu::always_inline]] constexpr int panel() const { return adds ? 1 : winograd_panel; }
  // Floats of a panel's weights of one position: where products have additions, their terms follow.
  [[gnu::always_inline]] constexpr size_t weight_floats(int width, int in_blocks, int block) const {
    return (static_cast<size_t>(in_blocks) * block + (adds ? 2 : 0)) * width;
  }
};

// Products of one position: [tile][channel] x [channel][lane of panel].
struct WinogradArgs {
  WinogradShape shape;
  int block = 28;        // tiles that are encoded, multiplied and decoded together; every value is right
  const void* src;       // images of floats [groups * in_channels / c][h][w][c], the last block padded with zeros, or
                         // of bytes [h][w][groups * in_channels]
  int64_t src_image;     // elements from one image to the next
  float src_zero = 0;    // of bytes: which of them is zero; there is one step from each to the next
  const float* weights;  // of winograd_pack, 64-byte aligned; not read if there are rows
  WeightRows rows;       // in passing only: weights are then read where the model has them
  void* dst;             // images like src's; padding lanes are written as zero. Float32 unless src has bytes
  int64_t dst_image, residual_image;
  Epilogue epilogue;  // bias: winograd_bias_size floats; scale likewise with bytes, else null
};

// The transforms of weights, in double: rows of G for each axis.
struct WinogradWeights {
  int rows, columns;      // WinogradAxis::weights
  int taps_h, taps_w;     // of the kernel
  const double *gh, *gw;  // [weight][tap]
};

struct WinogradKernels {
  int block;  // c
  // Tiles per step of the products, plain ones and those with additions: blocks that are multiples of it run best.
  int max_group, added_group;
  // Both axes are independent of each other; true if encode and decode exist for this form of one.
  bool (*has_transform)(int tile, int kernel, int stride);
  size_t (*scratch_bytes)(const WinogradShape&, int block);  // of run, 64-byte aligned
  bool (*can_pass)(const WinogradShape&);  // whether in_passing may be set: both axes must be of one form
  // Whether weights transformed in passing go from registers into the products of so many tiles, and not through L2.
  bool (*passes_in_registers)(const WinogradShape&, int tiles);
  void (*pack_taps)(const WinogradShape&, const WeightRows&, float* packed);  // winograd_pack's part in passing
  // One input channel for one block of output channels: taps [kernel_h][kernel_w] to dst [weight], `width` and
  // `dst_weight` floats apart.
  void (*transform_weights)(const WinogradWeights&, const float* taps, int width, float* dst, size_t dst_weight);
  // Panels [panel_begin, panel_end) of winograd_panels, tiles [tile_begin, tile_end) of shape.tiles().
  void (*run)(const WinogradArgs&, int panel_begin, int panel_end, int tile_begin, int tile_end, void* scratch);
};

// Null where this build or machine lacks the level.
const WinogradKernels* winograd_kernels(Isa isa);

// Panels never mix groups.
int winograd_panels(const WinogradShape& shape, int block);
size_t winograd_packed_size(const WinogradShape& shape, int block);  // floats
// To [panel][weight][in channel][lane of panel], transformed in double, or with in_passing to
// [out block][in channel][tap][lane]. With adds each weight's channels are followed by what its sums start with and its
// scales.
void winograd_pack(const WinogradShape& shape, const WinogradKernels& kernels, const WeightRows& rows, float* packed);
size_t winograd_bias_size(const WinogradShape& shape, int block);  // floats, output channels rounded up to c

// G of all phases: [weight][tap], zero for the taps of other phases.
std::vector<double> winograd_weight_transform(const WinogradAxis& axis);

// Relative L2 error of the result on data without structure: what rounding does to the transforms' sums, from the
// matrices themselves. Within a third of what is measured, whatever the channels.
double winograd_error(const WinogradShape& shape);

}  // namespace softneuro
