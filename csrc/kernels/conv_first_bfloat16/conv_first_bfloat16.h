// conv_first by products of bfloat16 tiles: each output's window becomes the channels of a pixel of a 1x1 convolution
// (conv_bfloat16). Two rows of samples, of any channels, are split side by side, so that a window is runs of kernel_w
// pairs; runs follow each other without gaps: the 27 products of a 3x3 kernel of three channels take one step of the
// tiles, the 147 of a 7x7 kernel five. Arguments and layouts: conv_first.h; no dilation along rows.
#pragma once

#include "kernels/conv_bfloat16/conv_bfloat16.h"
#include "kernels/conv_first/conv_first.h"

namespace softneuro {

struct ConvFirstBfloat16Kernels {
  int block;  // c
  struct Run {
    size_t (*scratch_bytes)(const ConvFirstArgs&);  // as ConvFirstKernels'
    void (*run)(const ConvFirstArgs&, int row_begin, int row_end, void* scratch);
  };
  Run two_parts, three_parts;  // of each float32: three products for one, six
};

// Null where this build or machine lacks the level.
const ConvFirstBfloat16Kernels* conv_first_bfloat16_kernels(Isa isa);

// Bytes of an output's window once it is split.
size_t conv_first_bfloat16_pixel_bytes(const ConvFirstArgs& sizes, int block, int parts);
size_t conv_first_bfloat16_packed_bytes(const ConvFirstArgs& sizes, int block, int parts);
// Packs [out_channels][in_channels][kernel_h][kernel_w] to weights of conv_bfloat16.
void conv_first_bfloat16_pack(const ConvFirstArgs& sizes, const ConvBfloat16Kernels& kernels, int parts,
                              const float* weights, void* packed);

}  // namespace softneuro
