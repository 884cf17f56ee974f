// The split input of a band of output rows, in which any tap of consecutive outputs is consecutive pixels.
#pragma once

#include "base/lines.h"
#include "kernels/conv_bfloat16/conv_bfloat16.h"
#include "kernels/conv_bfloat16/tiles.h"
#include "kernels/integers.h"

namespace softneuro::SN_ISA {
namespace conv_bfloat16 {

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
        pair(phase * s.phases()),
        pairs(ceil_div(s.in_channels, 2 * lanes)) {}
};

constexpr size_t sums_bytes = 2 * most_sums * tile_rows * row_bytes;

struct Scratch {
  size_t* taps = nullptr;  // where each begins in a pair's planes, bytes
  float* sums = nullptr;   // two sets of tiles
  char* planes = nullptr;
  size_t bytes = 0;

  Scratch() = default;
  Scratch(const ConvBfloat16Shape& s, int rows, char* memory) {
    const auto take = [&](size_t count) {
      char* at = memory + bytes;
      bytes += round_to_line(count);
      return at;
    };
    const Planes layout(s, rows);
    taps = reinterpret_cast<size_t*>(take(sizeof(size_t) * s.taps()));
    sums = reinterpret_cast<float*>(take(sums_bytes));
    planes = take(layout.pair * layout.pairs);
  }
};

// Those of the input channels from `first` on that are split at a time.
inline ConvBfloat16Shape depth_shape(const ConvBfloat16Args& args, int first) {
  ConvBfloat16Shape shape = args.shape;
  shape.in_channels -= first;
  if (args.depth > 0 && args.depth < shape.in_channels) shape.in_channels = args.depth;
  return shape;
}

inline size_t scratch_bytes(const ConvBfloat16Args& args) {
  return Scratch(depth_shape(args, 0), args.rows, nullptr).bytes;
}
inline size_t planes_bytes(const ConvBfloat16Shape& shape, int rows) {
  const Planes layout(shape, rows);
  return layout.pair * layout.pairs;
}

struct Band {
  const ConvBfloat16Args& args;
  const Planes& planes;
  const Scratch& scratch;
  int row, rows;                // of the output
  int pairs_before, all_pairs;  // of input blocks: in the weights, before those of the planes and in all
};

// What is to be split of pixels in a row, `step` floats apart.
struct Pixels {
  const float* src;
  size_t step, block;  // floats from pixel to pixel and from channel block to channel block
  int count;
};

// split(splitter, pixel, to) for each, some at a time; those with values that Splitter cannot split, by any(pixel, to).
template <size_t bytes, class Split, class Any>
SN_INLINE void split_some(const Pixels& pixels, char* to, const Split& split, const Any& any) {
  constexpr int some = 8;
  const float* src = pixels.src;
  for (int left = pixels.count; left > 0; left -= some) {
    const int count = left < some ? left : some;
    Splitter splitter;
    for (int i = 0; i < count; ++i) {
      split(splitter, src + i * pixels.step, reinterpret_cast<uint16_t*>(to + i * bytes));
    }
    if (!splitter.right()) {
      for (int i = 0; i < count; ++i) any(src + i * pixels.step, reinterpret_cast<uint16_t*>(to + i * bytes));
    }
    src += count * pixels.step, to += count * bytes;
  }
}

template <int parts>
inline void split_pairs(const Pixels& pixels, char* to) {
  const size_t block = pixels.block;
  split_some<parts * row_bytes>(
      pixels, to,
      [&](Splitter& splitter, const float* src, uint16_t* row)
          __attribute__((always_inline)) { splitter.split<parts>(src, src + block, row); },
      [&](const float* src, uint16_t* row) { split_any<parts>(src, src + block, row); });
}
template <int parts>
inline void split_halves(const Pixels& pixels, char* to) {
  split_some<parts * row_bytes>(
      pixels, to,
      [](Splitter& splitter, const float* src, uint16_t* row)
          __attribute__((always_inline)) { splitter.split<parts>(src, row); },
      [](const float* src, uint16_t* row) { split_any<parts>(src, row); });
}

// The same of the last channels, fewer than fill their blocks, of pixels that have no others behind them.
template <int parts>
inline void split_last(const Pixels& pixels, int channels, char* to) {
  const bool half = channels <= lanes;
  const float* src = pixels.src;
  for (int i = 0; i < pixels.count; ++i, src += pixels.step) {
    float padded[2 * lanes];
    store(padded, load_n(src, half ? channels : lanes));
    store(padded + lanes, half ? zero() : load_n(src + lanes, channels - lanes));
    const Pixels one{padded, 0, lanes, 1};
    half ? split_halves<parts>(one, to) : split_pairs<parts>(one, to);
    to += parts * row_bytes;
  }
}

// Samples first, first + stride, ... that are within [0, in): the first of `count`, and how many there are.
struct Inside {
  int skipped, count;
  Inside(int first, int stride, int in, int count) {
    const auto before = [&](int end) { return first < end ? ceil_div(end - first, stride) : 0; };
    const auto within = [&](int number) { return number < count ? number : count; };
    skipped = within(before(0));
    this->count = within(before(in)) - skipped;
  }
};

// Blocked: floats from channel block to channel block.
inline size_t src_plane(const ConvBfloat16Args& args) {
  const ConvBfloat16Shape& s = args.shape;
  return args.src_plane != 0 ? args.src_plane : static_cast<size_t>(s.y.in) * s.x.in * lanes;
}

// Pairs of input blocks [pair_begin, pair_end).
template <int parts>
inline void fill(const Band& band, int pair_begin, int pair_end) {
  const ConvBfloat16Shape& s = band.args.shape;
  const Planes& planes = band.planes;
  const bool blocked = band.args.src_pixel == 0;
  const size_t pixel = blocked ? lanes : band.args.src_pixel;
  const size_t block = blocked ? src_plane(band.args) : lanes;
  const int height = s.y.samples(band.rows);
  for (int p = pair_begin; p < pair_end; ++p) {
    const int channels = s.in_channels - 2 * p * lanes;
    const bool half = channels <= lanes, partly = !blocked && channels < (half ? lanes : 2 * lanes);
    const auto split_pixels = [&](const float* from, size_t step, int count, char* to) {
      const Pixels pixels{from, step, block, count};
      if (partly) return split_last<parts>(pixels, channels, to);
      half ? split_halves<parts>(pixels, to) : split_pairs<parts>(pixels, to);
    };
    const float* const src = band.args.src + 2 * p * block;
    for (int phase = 0; phase < s.phases(); ++phase) {
      char* to = band.scratch.planes + p * planes.pair + phase * planes.phase;
      const int first_y = phase / s.x.phases() * s.y.dilation % s.y.stride - s.y.pad + band.row * s.y.stride;
      const int first_x = phase % s.x.phases() * s.x.dilation % s.x.stride - s.x.pad;
      const Inside inside(first_x, s.x.stride, s.x.in, planes.width);
      const auto at = [&](int y, int x) { return src + (static_cast<size_t>(y) * s.x.in + x) * pixel; };
      const auto zeros = [&](int count) {
        __builtin_memset(to, 0, count * planes.pixel);
        to += count * planes.pixel;
      };
      if (planes.width == 1 && inside.count == 1 && s.y.stride == 1 && first_y >= 0 && first_y + height <= s.y.in) {
        split_pixels(at(first_y, first_x), s.x.in * pixel, height, to);  // one column
        continue;
      }
      for (int i = 0; i < height; ++i) {
        const int y = first_y + i * s.y.stride;
        if (y < 0 || y >= s.y.in) {
          zeros(planes.width);
          continue;
        }
        zeros(inside.skipped);
        split_pixels(at(y, first_x + inside.skipped * s.x.stride), s.x.stride * pixel, inside.count, to);
        to += inside.count * planes.pixel;
        zeros(planes.width - inside.skipped - inside.count);
      }
    }
  }
}

}  // namespace conv_bfloat16
}  // namespace softneuro::SN_ISA
