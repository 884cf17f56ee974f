// Convolution on channels-last blobs as a matrix product whose left rows are found through tables (Dukhan, "The
// Indirect Convolution Algorithm"): any kernel size, stride, dilation and padding, no copy of patches.
//
//   dst[p][k] = act(bias[k] + residual[p][k] + sum over r, s, c of w[k][c][r][s] * src[rows[y][r] + columns[x][s] + c])
//
// p = y * out_w + x is a pixel of the output. Taps whose row or column lies in the padding contribute nothing. Tiles of
// pixels go on from one output row into the next, so that small maps fill them too.
#pragma once

#include <cstddef>

#include "base/arch.h"
#include "kernels/epilogue.h"

namespace softneuro {

// In the tables: the tap lies in the padding. Two of them may be added.
constexpr ptrdiff_t conv_indirect_outside = -(static_cast<ptrdiff_t>(1) << 61);

// How the work is cut; every value is right for every shape, speed differs.
struct ConvIndirectTiling {
  int panel = 2;         // vectors of output channels that share a pass over src: 1 ... max_panel
  int pixel_block = 56;  // pixels per pass over all panels
  int tap_block = 9;     // taps summed in one go; partial sums wait in dst
};

struct ConvIndirectArgs {
  int in_channels = 0, out_channels = 0;
  int kernel_h = 1, kernel_w = 1, out_w = 0;
  ConvIndirectTiling tiling;
  const ptrdiff_t* rows = nullptr;     // [out_h][kernel_h]: floats from src to a row of the input
  const ptrdiff_t* columns = nullptr;  // [out_w][kernel_w]: floats from there to a pixel
  const float* zeros = nullptr;        // in_channels of them
  const float* src = nullptr;
  const float* weights = nullptr;  // of conv_indirect_pack; 64-byte aligned runs best
  float* dst = nullptr;            // nothing past a pixel's out_channels is touched
  ptrdiff_t dst_stride = 0;        // floats from pixel to pixel
  Epilogue epilogue;               // bias: out_channels floats; residual: with dst_stride
};

struct ConvIndirectKernels {
  int lanes;        // of a vector
  int max_panel;    // largest tiling.panel
  int max_tile[5];  // pixels per step by panel; [0] unused
  // Panels [panel_begin, panel_end) of ceil(out_channels / (lanes * panel)), output pixels [pixel_begin, pixel_end).
  void (*run)(const ConvIndirectArgs&, int panel_begin, int panel_end, int pixel_begin, int pixel_end);
};

// Null where this build or machine lacks the level.
const ConvIndirectKernels* conv_indirect_kernels(Isa isa);

size_t conv_indirect_packed_size(const ConvIndirectArgs& args, int lanes);  // floats
// Packs [out_channels][in_channels][kernel_h][kernel_w] to [panel][r][s][in channel][lane of panel], zero past the
// last.
void conv_indirect_pack(const ConvIndirectArgs& args, int lanes, const float* weights, float* packed);

}  // namespace softneuro
