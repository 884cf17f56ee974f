// What kernels on vectors of positions read (see kernels/conv_sparse): a band of rows of some channels, padding in
// place, of row-major and of tiled blobs.
#pragma once

#include <cstdint>
#include <vector>

#include "base/threads.h"
#include "kernels/conv_sparse/conv_sparse.h"
#include "layers/conv2d/conv2d.h"

namespace softneuro {

// Copies channels' windows out of row-major or tiled planes; of the former, only `h` and `w` of the tiles' fields
// count. False if there is a value that is not finite.
bool copy_window(const ConvSparseKernels& kernels, bool tiled, const ConvSparseTiles& window);
// Lanes of a row of a tiled plane that are outside an image of height by width, as elements from the row's start.
std::vector<int32_t> lanes_outside(const TileGrid& grid, int64_t height, int64_t width, int64_t row);

class PaddedWindow {
 public:
  PaddedWindow() = default;
  // outside: what padding is, of tiled blobs.
  PaddedWindow(const Conv2dParams& p, const ConvSparseKernels& kernels, bool tiled, float outside = 0);

  // Counts of positions: rows and vectors of the output, and lanes of the last vector.
  int64_t rows() const { return out_.h; }
  int64_t vectors() const { return vectors_; }
  int64_t last() const { return last_; }
  // Strides in floats.
  int64_t dst_row() const { return dst_row_; }
  int64_t dst_channel() const { return out_.h * dst_row_; }
  int64_t src_channel() const { return src_channel_; }
  int64_t src_row() const { return p_.sh * row_; }
  // Floats of one channel in a window for so many rows of positions.
  int64_t plane(int64_t rows) const;
  // Offsets of codes: channel of the window * taps + tap.
  std::vector<int32_t> offsets(int64_t channels, int64_t rows) const;

  // Whether the blob itself would do: nothing is padded, and its vectors are the window's.
  bool in_place() const;
  // Whether each lane's taps are in its own tile, and none of them is padding.
  bool stays_in_tiles() const;
  // Offsets of taps in a plane of the input, where they stay in tiles; steps from a row or column of positions to the
  // next.
  std::vector<int32_t> tile_offsets() const;
  int64_t tile_row() const { return p_.sh * in_.w * unit_; }
  int64_t tile_column() const { return p_.sw * unit_; }
  // Copies the windows of so many channels for rows of positions, `plane` floats apart. False if there is a value that
  // is not finite.
  bool copy(const float* first, int64_t channels, Range rows, float* to, int64_t plane) const;

  // Elements of a plane: where a pixel of the input or output is.
  int64_t in_at(int64_t y, int64_t x) const { return in_.at(y, x); }
  int64_t out_at(int64_t y, int64_t x) const { return out_.at(y, x); }
  // The row of positions that an output pixel belongs to.
  int64_t row_of(int64_t y) const { return y % out_.h; }
  // The lanes outside the image of a row of positions, as elements of a plane of dst.
  std::vector<int32_t> outside(int64_t row) const;

 private:
  Conv2dParams p_;
  bool tiled_ = false;
  float padding_ = 0;
  int lanes_ = 1;
  const ConvSparseKernels* kernels_ = nullptr;
  TileGrid in_, out_;  // row-major: of one tile
  int64_t unit_ = 1;   // floats of a column
  int64_t vectors_ = 0, last_ = 0, dst_row_ = 0, src_channel_ = 0;
  int64_t columns_ = 0, row_ = 0;  // of a window: columns of a phase, floats of a row
};

}  // namespace softneuro
