// 1x1 convolution on blocked blobs with seven products for eight: a level of Strassen's algorithm in Winograd's form
// (Strassen, "Gaussian elimination is not optimal", 1969; 15 additions: Winograd, 1971), made in registers.
//
//   dst[k][y][x] = act(bias[k] + residual[k][y][x] + sum over c of w[k][c] * src[c][y*stride_h][x*stride_w])
//
// Pixels are rows of a, input channels columns of a and rows of b, output channels columns of b. A block of pixels is
// halved, as are the whole blocks of channels on either side. Sums of a's quarters are made once per block of pixels,
// sums of b's when it is packed, and those of products for each tile of registers in turn: a product goes on from where
// another one ended, so that nothing but tiles in L1 lies between them. With s1 = a21 + a22, s2 = s1 - a11,
// s3 = a11 - a21, s4 = a12 - s2 and the sums of b that pack makes:
//   c11 = a11 b11 + a12 b21              u = a11 b11 + s2 t2
//   c12 = u + s1 t1 + s4 b22             c21 = u + s3 t3 - a22 t4             c22 = u + s3 t3 + s1 t1
// If a number of blocks is odd, the last input block is added to all four as it is, and the last output block is
// computed apart; so is a single pixel, by c1 = a1 b11 + a2 b21 and c2 = a1 b11 + a1 t1 + a2 b22.
#pragma once

#include <cstddef>

#include "base/arch.h"
#include "kernels/epilogue.h"
#include "kernels/pointwise_shape.h"

namespace softneuro {

// How the work is cut; every value is right for every shape, speed differs.
struct ConvStrassenTiling {
  int panel = 2;        // output channel blocks of either half that share a pass over a: 1 ... max_panel
  int row_block = 224;  // pixels per pass over all panels
};

struct ConvStrassenArgs {
  PointwiseShape shape;
  ConvStrassenTiling tiling;
  const float* src;      // [in_channels / c][h][w][c], the last block padded with zeros
  const float* weights;  // of pack, 64-byte aligned
  float* dst;            // [out_channels / c][out_h][out_w][c]; lanes past the channels are written as zero
  Epilogue epilogue;     // bias: out_channels rounded up to c
};

struct ConvStrassenKernels {
  int block;      // c
  int max_panel;  // largest tiling.panel
  // Bytes of scratch that run needs, 64-byte aligned.
  size_t (*scratch_bytes)(const PointwiseShape&, const ConvStrassenTiling&);
  // Panels [panel_begin, panel_end) of conv_strassen_panels, pixels [pixel_begin, pixel_end) of out_h * out_w.
  void (*run)(const ConvStrassenArgs&, int panel_begin, int panel_end, int pixel_begin, int pixel_end, void* scratch);
};

// Null where this build or machine lacks the level.
const ConvStrassenKernels* conv_strassen_kernels(Isa isa);

// The blocks of channels on either side: `half` twice, and perhaps one more.
struct ConvStrassenBlocks {
  int in_half, in_rest, out_half, out_rest;
  [[gnu::always_inline]] constexpr ConvStrassenBlocks(const PointwiseShape& s, int block)
      : in_half((s.in_channels + block - 1) / block / 2),
        in_rest((s.in_channels + block - 1) / block % 2),
        out_half((s.out_channels + block - 1) / block / 2),
        out_rest((s.out_channels + block - 1) / block % 2) {}
  [[gnu::always_inline]] constexpr int in() const { return 2 * in_half + in_rest; }
};

// Panels of pairs of output blocks, as even as can be, then one for the rest.
int conv_strassen_panels(const PointwiseShape& shape, int block, int panel);
size_t conv_strassen_packed_size(const PointwiseShape& shape, int block);  // floats
// Packs rows of weights, [out_channels][in_channels].
void conv_strassen_pack(const PointwiseShape& shape, int block, int panel, const float* weights, float* packed);

}  // namespace softneuro
