// The split input of a band of output rows, in which any tap of consecutive outputs is consecutive pixels.
#pragma once

#include "kernels/conv_bfloat16/conv_bfloat16.h"
#include "kernels/conv_bfloat16/tiles.h"
#include "kernels/integers.h"

namespace softneuro::SN_ISA {
namespace conv_bfloat16 {

constexpr size_t weight_tile = lanes * row_bytes;
constexpr int most_sums = 4;  // tiles

// A plane holds one phase of one pair of input blocks; the phases of a pair follow each other. A pixel is a row of each
// part.
struct Planes {
  int width, height;          // of a phase
  size_t pixel, phase, pair;  // bytes
  int pairs;

  Planes(const ConvBfloat16Shape& s, int rows)
      : width(s.x.samples(s.x.out)),
        height(s.y.samples(rows)),
        pixel(static_cast<size_t>(s.parts) * row_bytes),
        // What the last tile reads past the last output belongs to no output.
        phase((static_cast<size_t>(width) * height + 2 * tile_rows) * pixel),
        pair(phase * s.y.phases() * s.x.phases()),
        pairs(ceil_div(s.in_channels, 2 * lanes)) {}
};

struct Scratch {
  size_t* taps;  // where each begins in a pair's planes, bytes
  float* sums;   // two sets of tiles
  char* planes;
  size_t bytes = 0;

  Scratch(const ConvBfloat16Shape& s, int rows, char* memory) {
    const auto take = [&](size_t count) {
      char* at = memory + bytes;
      bytes += (count + 63) / 64 * 64;
      return at;
    };
    const Planes layout(s, rows);
    taps = reinterpret_cast<size_t*>(take(sizeof(size_t) * s.taps()));
    sums = reinterpret_cast<float*>(take(2 * most_sums * tile_rows * row_bytes));
    planes = take(layout.pair * layout.pairs);
  }
};

inline size_t scratch_bytes(const ConvBfloat16Shape& shape, int rows) { return Scratch(shape, rows, nullptr).bytes; }

struct Band {
  const ConvBfloat16Args& args;
  const Planes& planes;
  const Scratch& scratch;
  int row, rows;  // of the output
};

template <int parts>
SN_INLINE void split_pixel(const float* src, size_t block, int blocks, char* to) {
  constexpr size_t row = 2 * lanes;
  auto* const first = reinterpret_cast<uint16_t*>(to);
  split<parts>(src, first, row);
  if (blocks > 1) {
    split<parts>(src + block, first + lanes, row);
  } else {
    for (int part = 0; part < parts; ++part) __builtin_memset(first + part * row + lanes, 0, lanes * 2);
  }
}

// The last channels of a pixel that has no others behind them.
template <int parts>
SN_INLINE void split_last(const float* src, int channels, char* to) {
  float padded[2 * lanes];
  store(padded, load_n(src, channels < lanes ? channels : lanes));
  store(padded + lanes, channels > lanes ? load_n(src + lanes, channels - lanes) : zero());
  split_pixel<parts>(padded, lanes, 2, to);
}

template <int parts>
inline void fill(const Band& band) {
  const ConvBfloat16Shape& s = band.args.shape;
  const Planes& planes = band.planes;
  const bool blocked = band.args.src_pixel == 0;
  const size_t pixel = blocked ? lanes : band.args.src_pixel;
  const size_t block = blocked ? static_cast<size_t>(s.y.in) * s.x.in * lanes : lanes;
  const int in_blocks = ceil_div(s.in_channels, lanes), height = s.y.samples(band.rows);
  for (int p = 0; p < planes.pairs; ++p) {
    const float* src = band.args.src + 2 * p * block;
    const int blocks = in_blocks - 2 * p, channels = s.in_channels - 2 * p * lanes;
    for (int phase = 0; phase < s.y.phases() * s.x.phases(); ++phase) {
      char* to = band.scratch.planes + p * planes.pair + phase * planes.phase;
      const int first_y = phase / s.x.phases() * s.y.dilation % s.y.stride - s.y.pad + band.row * s.y.stride;
      const int first_x = phase % s.x.phases() * s.x.dilation % s.x.stride - s.x.pad;
      for (int i = 0; i < height; ++i) {
        const int y = first_y + i * s.y.stride;
        for (int j = 0; j < planes.width; ++j, to += planes.pixel) {
          const int x = first_x + j * s.x.stride;
          if (y < 0 || y >= s.y.in || x < 0 || x >= s.x.in) {
            __builtin_memset(to, 0, planes.pixel);
          } else if (blocked || channels >= 2 * lanes) {
            split_pixel<parts>(src + (static_cast<size_t>(y) * s.x.in + x) * pixel, block, blocks, to);
          } else {
            split_last<parts>(src + (static_cast<size_t>(y) * s.x.in + x) * pixel, channels, to);
          }
        }
      }
    }
  }
}

}  // namespace conv_bfloat16
}  // namespace softneuro::SN_ISA
