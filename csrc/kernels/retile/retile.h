// To and from planes that are cut in tiles, one for each lane (base/schema.h, Layout::Kind::tiled): from row-major
// planes, and from pixels of as many channels side by side.
#pragma once

#include <cstddef>

#include "base/arch.h"

namespace softneuro {

// Rows [begin, end) of the tiles of one plane, or of one block of channels.
struct RetileArgs {
  float* image = nullptr;  // a plane [h][w], or a block [h][w][lanes]
  float* tiles = nullptr;  // [tile_h][tile_w][lanes], each channel of a block `stride` floats after the one before
  int h = 0, w = 0;
  int across = 1, tile_h = 0, tile_w = 0;  // lane i is the tile (i / across, i % across)
  int begin = 0, end = 0;
  int channels = 1;  // of the block that are in use: others are written as zero, and not read
  ptrdiff_t stride = 0;
};

struct RetileKernels {
  int lanes;
  // Lanes outside the image become zero.
  void (*plane_to_tiles)(const RetileArgs&);
  void (*tiles_to_plane)(const RetileArgs&);
  void (*block_to_tiles)(const RetileArgs&);
  void (*tiles_to_block)(const RetileArgs&);
};

// Null where this build or machine lacks the level.
const RetileKernels* retile_kernels(Isa isa);

}  // namespace softneuro
