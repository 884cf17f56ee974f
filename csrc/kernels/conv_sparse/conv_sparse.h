// Direct sparse convolution: the sums of a rectangle of output positions over the non-zero weights alone. Nothing is
// gathered: a weight meets whole vectors of a window of the input, which holds the padding in place.
//
//   dst[k][y][x] = act(bias[k] + residual[k][y][x] + sum over the non-zeros i of channel k of
//                      values[i] * src[offsets[codes[i]] + y * src_row + x * lanes])
//
// A position x is a vector: `lanes` neighbours of a row, or the same pixel of as many parts of an image. Weights are in
// compressed rows (CSR), one for each output channel. (Park et al., "Faster CNNs with Direct Sparse Convolutions and
// Guided Pruning", 2017, section 2; Guo et al., "Fused DSConv", algorithm 1.)
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/arch.h"
#include "kernels/activation.h"

namespace softneuro {

// Compressed rows of some output channels. Neighbours in the list are summed together: the more equal their counts are,
// the better.
struct SparseRows {
  const float* values = nullptr;
  const uint16_t* codes = nullptr;    // what each value is multiplied with: indices of ConvSparseArgs::offsets
  const int32_t* starts = nullptr;    // [count + 1], in values and codes
  const int32_t* channels = nullptr;  // [count], their numbers, in any order
  int count = 0;
};

struct ConvSparseArgs {
  const SparseRows* weights = nullptr;  // [lists], of different channels
  int lists = 1;
  const int32_t* offsets = nullptr;  // floats
  const float* src = nullptr;        // position (0, 0) of what offset 0 is
  ptrdiff_t src_row = 0;             // floats from a row of positions to the next
  float* dst = nullptr;              // of channel 0, at position (0, 0)
  ptrdiff_t dst_row = 0, dst_channel = 0;
  const float* residual = nullptr;  // lies like dst, may be dst; null: none
  const float* bias = nullptr;      // of channel 0; null: zero
  int rows = 0, vectors = 0;        // of positions
  int last = 0;                     // lanes of a row's last vector that are written, all of those before
  bool first = true, final = true;  // start from the bias, else from dst; finish, else only store the sums
  bool stream = false;              // past the caches: whole aligned vectors, first and final, the activation a clamp
  Activation activation;
};

// One channel's plane of a row-major image, padded and with its columns sorted by phase, x % phases: what a window of
// such planes has.
struct ConvSparsePlane {
  const float* src = nullptr;  // [h][w]
  int h = 0, w = 0;
  int top = 0, left = 0;  // of the window, in the image; outside of it zero is read
  int rows = 0;
  int phases = 1, columns = 0;  // a row of the window has phases * columns floats
  float* dst = nullptr;
};

// The same of planes cut in tiles, one for each lane: tile (i, j) of the window begins at pixel (i * step_h + top,
// j * step_w + left) of the image.
struct ConvSparseTiles {
  struct {
    const float* data = nullptr;  // [h][w][lanes]
    int down = 1, across = 1, h = 0, w = 0;
  } src;             // lane i is the tile (i / across, i % across)
  int h = 0, w = 0;  // of the image
  int across = 1, step_h = 0, step_w = 0;
  int top = 0, left = 0;
  int rows = 0;
  int phases = 1, columns = 0;  // a row of the window has phases * columns vectors
  float outside = 0;            // what is read outside the image
  float* dst = nullptr;
  int channels = 1;
  ptrdiff_t src_channel = 0, dst_channel = 0;  // floats from one to the next
};

struct ConvSparseKernels {
  int lanes;
  void (*run)(const ConvSparseArgs&);
  // False if there is a value that is not finite.
  bool (*copy_plane)(const ConvSparsePlane&);
  bool (*copy_tiles)(const ConvSparseTiles&);
};

// Null where this build or machine lacks the level.
const ConvSparseKernels* conv_sparse_kernels(Isa isa);

}  // namespace softneuro
