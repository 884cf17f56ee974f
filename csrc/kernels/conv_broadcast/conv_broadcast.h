// 1x1 convolution on blocked blobs with pixels in the lanes: weights are broadcast from where the model has them, each
// of them once for a strip of pixels, and need no packing. What is turned instead is the pixels, of which the last
// layers of networks for images have few and weights many.
//
//   dst[k][p] = act(factors[k] * (sum over c of weights[k][c] * src[c][p]) + bias[k] + residual[k][p])
//
// Pixels are cut in strips of whole vectors, and of one pixel more where some are left over.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/arch.h"
#include "kernels/epilogue.h"
#include "kernels/integers.h"

namespace softneuro {

// Pixels of an image in strips that are as even as can be.
struct ConvBroadcastStrips {
  struct Strip {
    int begin, vectors, valid;  // first pixel; vectors and the pixels in them
    bool single;                // whether one more pixel follows
    int pixels() const { return valid + (single ? 1 : 0); }
  };
  int lanes = 1, pixels = 0;
  int count = 0, vectors = 0, singles = 0;

  constexpr ConvBroadcastStrips() = default;
  [[gnu::always_inline]] constexpr ConvBroadcastStrips(int image_pixels, int lane_count, int max_vectors)
      : lanes(lane_count), pixels(image_pixels), vectors(image_pixels / lane_count) {
    const int left = pixels % lanes;
    count = ceil_div(vectors, max_vectors);
    singles = left;
    if (left <= count) return;
    singles = 0;  // too many for the strips there are: the last vector is not full
    count = ceil_div(++vectors, max_vectors);
  }
  // The first strips have the single pixels.
  [[gnu::always_inline]] constexpr Strip at(int index) const {
    const int each = vectors / count, longer = vectors % count;
    Strip s{};
    s.vectors = each + (index < longer ? 1 : 0);
    s.single = index < singles;
    s.begin = (index * each + (index < longer ? index : longer)) * lanes + (index < singles ? index : singles);
    const int left = pixels - s.begin;
    s.valid = s.vectors * lanes < left ? s.vectors * lanes : left;
    return s;
  }
};

struct ConvBroadcastArgs {
  int in_channels = 0, out_channels = 0;
  ConvBroadcastStrips strips;      // of each image
  const float* weights = nullptr;  // [out_channels][in_channels]
  const float* factors = nullptr;  // null: 1; else, like the bias, padded to whole blocks
  // Images of [in_channels / c][h][w][c], the last block padded with zeros.
  const float* src = nullptr;
  size_t src_image = 0, src_plane = 0, src_row = 0, src_pixel = 0;  // floats: to the next image, block, and the pixels
  int out_w = 0;                                                    // below and to the right that are read
  float* dst = nullptr;  // images of [out_channels / c][pixels][c]; lanes past the channels are written as zero
  size_t dst_image = 0, residual_image = 0;
  Epilogue epilogue;
};

struct ConvBroadcastKernels {
  int block;        // c
  int max_vectors;  // of a strip
  // Input blocks [block_begin, block_end) of a strip to columns: conv_broadcast_strip_size floats for all of them,
  // which 64-byte aligned are read best. Strips are counted over all images.
  void (*turn)(const ConvBroadcastArgs&, int strip, int block_begin, int block_end, float* columns);
  // Output blocks [block_begin, block_end) of strips [strip_begin, strip_end), which are turned to columns in a row.
  void (*run)(const ConvBroadcastArgs&, int strip_begin, int strip_end, int block_begin, int block_end,
              const float* columns);
};

// Null where this build or machine lacks the level.
const ConvBroadcastKernels* conv_broadcast_kernels(Isa isa);

// Floats.
[[gnu::always_inline]] constexpr size_t conv_broadcast_strip_size(int in_channels, int block, int max_vectors) {
  return static_cast<size_t>(round_up(in_channels, block)) * static_cast<size_t>(max_vectors * block + 1);
}

}  // namespace softneuro
