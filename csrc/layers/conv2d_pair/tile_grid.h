// The fixed grid of tiles over a pair's intermediate map, and what a task computes of each tile for the output rows
// that it owns. All that a task does for an output element is in the same order whoever owns it.
#pragma once

#include <cstdint>
#include <vector>

#include "base/threads.h"
#include "kernels/conv_pair/conv_pair.h"
#include "layers/conv2d/conv2d.h"

namespace softneuro {

// Along one axis: pixel p of phase f is intermediate coordinate p * stride + f - pad of the second convolution.
struct PairAxis {
  struct Tap {
    int64_t phase, shift;  // a pixel p of that phase reaches output p - shift
  };
  int64_t size, outputs, stride, pad;  // of the intermediate map; of the output; of the second convolution
  std::vector<Tap> taps;               // of the second kernel
  int64_t pixels;                      // of a phase
  int64_t tile;                        // pixels of a phase in a tile

  PairAxis(int64_t size, int64_t outputs, int64_t stride, int64_t pad, int64_t kernel, int64_t dilation, int64_t tile,
           int64_t unit);
  int64_t tiles() const { return (pixels + tile - 1) / tile; }
  // Pixels of a phase that are inside the map and reach one of the outputs.
  Range wanted(int64_t phase, Range outs) const;
  // The pixels among these that reach an output by the tap.
  Range reaching(const Tap& tap, Range outs) const;
};

class PairTiles {
 public:
  PairTiles(const Conv2dParams& p1, const Conv2dParams& p2, int height, int width, int lanes);

  // Input rows that tiles of a row of tiles read.
  struct Band {
    int64_t top = 0, rows = 0;  // first input row, may be in the padding; 0 rows: nothing is wanted
  };
  Band band(int64_t tile_row, Range out_rows) const;

  // Fills planes and taps for a tile, and those of the arguments that all tiles share but for pointers to memory.
  void set_tile(int64_t tile_row, int64_t tile_column, Range out_rows, const Band& band, ConvPairPlane* planes,
                ConvPairTap* taps) const;

  const PairAxis& rows() const { return y_; }
  const PairAxis& columns() const { return x_; }
  int64_t plane_count() const { return static_cast<int64_t>(planes_.size()); }
  int64_t tap_count() const { return static_cast<int64_t>(y_.taps.size() * x_.taps.size()); }
  int64_t tile_floats() const { return plane_count() * y_.tile * x_.tile; }
  // The padded source of a row of tiles: [channel][row][phase][column].
  int64_t phases() const { return p1_.sw * p2_.sw; }
  int64_t before() const { return p1_.pl + p2_.pl * p1_.sw; }  // zeros in front of a row
  int64_t band_columns() const { return band_columns_; }
  int64_t band_row() const { return phases() * band_columns_; }
  int64_t band_plane() const { return most_rows_ * band_row(); }
  int64_t band_floats() const { return p1_.c * band_plane(); }

 private:
  struct Plane {
    int64_t row_phase, column_phase;
    std::vector<int> taps;  // ConvPairPlane::taps
  };
  int plane_of(int64_t row_phase, int64_t column_phase) const;

  Conv2dParams p1_, p2_;
  PairAxis y_, x_;
  int64_t band_columns_, most_rows_;
  std::vector<Plane> planes_;  // that a tap reads
};

}  // namespace softneuro
