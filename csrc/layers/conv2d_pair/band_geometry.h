// Where things are when a pair of convolutions is computed by bands of rows: windows of the input and of the
// intermediate map, on row-major and on tiled blobs.
//
// All coordinates are those of one tile of the output, a lane's (of row-major blobs there is one tile): row y of the
// second convolution's outputs reads rows y * stride + r * dilation of the intermediate map, and these read rows of the
// input likewise. Padding is in place, so nothing is negative. Tiles have halos of their own.
#pragma once

#include <cstdint>
#include <vector>

#include "base/lines.h"
#include "base/schema.h"
#include "base/threads.h"
#include "kernels/conv_sparse/conv_sparse.h"
#include "layers/conv2d/conv2d.h"

namespace softneuro {

// Rows of a plane with their columns sorted by x % phases; a column has `unit` floats, one for each lane.
struct SortedPlane {
  int64_t rows = 0, phases = 1, columns = 0, unit = 1;

  int64_t row() const { return phases * columns * unit; }
  int64_t floats() const { return odd_lines(rows * row()); }
  int64_t at(int64_t y, int64_t x) const { return y * row() + (x % phases * columns + x / phases) * unit; }
};

class BandGeometry {
 public:
  // rows: of a band, of the output.
  BandGeometry(const Conv2dParams& p1, const Conv2dParams& p2, int lanes, bool tiled, int64_t rows);

  // The output: rows of positions, vectors of a row, and lanes of the last one that are there.
  int64_t rows() const { return out_.h; }
  int64_t band() const { return band_; }
  int64_t vectors() const { return vectors_; }
  int64_t last() const { return last_; }
  SortedPlane out() const { return {out_.h, 1, out_.w, unit_}; }
  // Windows for a band.
  const SortedPlane& between() const { return between_; }
  const SortedPlane& source() const { return source_; }
  int64_t between_vectors() const { return between_.columns * unit_ / lanes_; }

  // Intermediate rows that output rows read, and input rows that intermediate ones read, as many from the first on.
  Range rows_between(Range outs) const;
  int64_t source_rows(int64_t rows) const { return (rows - 1) * p1_.sh + (p1_.kh - 1) * p1_.dh + 1; }
  // Finds what is padding, for what follows.
  void find_padding();
  // Whether the intermediate row is in no tile's image.
  bool is_padding(int64_t row) const;
  // The elements of an intermediate row that are padding, from its start.
  const std::vector<int32_t>& padding(int64_t row) const { return padding_[static_cast<size_t>(row)]; }
  // Lanes of an output row that are outside the image, from the row's start.
  const std::vector<int32_t>& outside(int64_t row) const { return outside_[static_cast<size_t>(row)]; }

  // Intermediate rows and columns of which numbers modulo the second stride are read at all.
  const std::vector<int64_t>& row_phases() const { return row_phases_; }
  const std::vector<int64_t>& column_phases() const { return column_phases_; }
  bool skips() const;

  // Copies the windows of so many channels that intermediate rows read. False if there is a value that is not finite.
  bool copy(const ConvSparseKernels& kernels, const float* first, int64_t channels, Range rows, float* to) const;
  int64_t source_channel() const { return in_.h * in_.w * unit_; }

  // Offsets of codes, channel of a chunk * taps + tap, in the windows. column_phase counts intermediate columns.
  std::vector<int32_t> first_offsets(int64_t channels, int64_t column_phase) const;
  std::vector<int32_t> second_offsets(int64_t channels) const;

 private:
  Conv2dParams p1_, p2_;
  bool tiled_;
  int64_t lanes_, unit_;
  TileGrid in_, out_;  // row-major: of one tile
  int64_t band_, vectors_, last_;
  SortedPlane between_, source_;
  std::vector<int64_t> row_phases_, column_phases_;
  std::vector<std::vector<int32_t>> padding_, outside_;
};

// What mend_nonfinite reads and writes, in windows as above.
struct Mending {
  SortedPlane from;  // as many rows as are there
  const float* src = nullptr;
  int64_t channels = 0, src_channel = 0;  // of a chunk; floats of one
  const SparseRows* lists = nullptr;
  int64_t list_count = 0;  // of the chunk's group
  SortedPlane to;          // as many rows as are to be mended
  float* dst = nullptr;
  int64_t dst_channel = 0;
};
// Makes NaN of the sums of a convolution in which a value that is not finite meets a zero weight, as a dense product
// has it.
void mend_nonfinite(const Conv2dParams& p, const Mending& mending);

}  // namespace softneuro
