// Weights to tiles: conv_bfloat16's packing. By panel, pair of input blocks and tap: the tiles of the first parts, one
// for each output block, then those of the others. Row i of a tile has channel i of either input block of its output
// channels, one's value beside the other's: what pixels' rows have as well, turned.
#pragma once

#include "kernels/conv_bfloat16/conv_bfloat16.h"
#include "kernels/conv_bfloat16/tiles.h"
#include "kernels/integers.h"
#include "kernels/unroll.h"

namespace softneuro::SN_ISA {
namespace conv_bfloat16 {

constexpr size_t weight_tile = lanes * row_bytes;

// Weights of one output channel with a pair of input blocks; channels that are not there are zero.
struct PairRow {
  alignas(64) float values[2 * lanes] = {};
  const float *first = values, *second = values + lanes;

  // Reads `channels` channels, `step` floats apart.
  SN_INLINE PairRow(const float* from, int channels, int step) {
    if (channels >= 2 * lanes && step == 1) {
      first = from, second = from + lanes;
      return;
    }
    if (channels > 2 * lanes) channels = 2 * lanes;
    for (int i = 0; i < channels; ++i, from += step) values[i] = *from;
  }
};

// One tile of each part, `part` bytes apart. rows: output channels that are there, `row` floats apart.
template <int parts>
inline void pack_pair(const float* weights, int rows, size_t row, int channels, int step, char* to, size_t part) {
  alignas(64) uint16_t split[parts][lanes][2 * lanes] = {};
  constexpr size_t split_part = lanes * 2 * lanes;
  for (int r = 0; r < rows; ++r) {
    const PairRow pair(weights + r * row, channels, step);
    Splitter splitter;
    splitter.split<parts>(pair.first, pair.second, split[0][r], split_part);
    if (!splitter.right()) split_any<parts>(pair.first, pair.second, split[0][r], split_part);
  }
  for (int i = 0; i < parts; ++i, to += part) {
    Vf columns[lanes];
    load_columns(reinterpret_cast<const float*>(split[i]), lanes, columns);
    unroll<lanes>([&](auto c) { store(reinterpret_cast<float*>(to) + c * lanes, columns[c]); });
  }
}

// A block alone meets rows of (first, second) and (third, first) parts of pixels: its tiles are the first parts twice,
// the second ones twice, and the first beside the third.
template <int parts>
inline void pack_half(const float* weights, int rows, size_t row, int channels, int step, char* to, size_t part) {
  for (int i = 0; i < parts; ++i) __builtin_memset(to + i * part, 0, weight_tile);
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < channels; ++c) {
      float x = weights[r * row + static_cast<size_t>(c) * step];
      uint16_t of[3] = {};
      for (int i = 0; i < parts; ++i) of[i] = take_bfloat16(x);
      const auto set = [&](int tile, uint16_t left, uint16_t right) {
        uint16_t* const at = reinterpret_cast<uint16_t*>(to + tile * part) + 2 * (c * lanes + r);
        at[0] = left, at[1] = right;
      };
      set(0, of[0], of[0]), set(1, of[1], of[1]);
      if constexpr (parts == 3) set(2, of[0], of[2]);
    }
  }
}

template <int parts>
inline void pack_parts(const ConvBfloat16Shape& s, const float* weights, void* packed) {
  auto* to = static_cast<char*>(packed);
  const int blocks = ceil_div(s.out_channels, lanes), taps = s.taps();
  const size_t row = static_cast<size_t>(s.in_channels) * taps;
  for (int first = 0; first < blocks; first += s.panel) {
    const int panel = blocks - first < s.panel ? blocks - first : s.panel;
    for (int channel = 0; channel < s.in_channels; channel += 2 * lanes) {
      const int channels = s.in_channels - channel;
      for (int tap = 0; tap < taps; ++tap, to += parts * panel * weight_tile) {
        for (int b = 0; b < panel; ++b) {
          const int k = (first + b) * lanes, rows = s.out_channels - k < lanes ? s.out_channels - k : lanes;
          const float* const from = weights + k * row + static_cast<size_t>(channel) * taps + tap;
          const auto pack = channels <= lanes ? pack_half<parts> : pack_pair<parts>;
          pack(from, rows, row, channels, taps, to + b * weight_tile, panel * weight_tile);
        }
      }
    }
  }
}

inline void pack(const ConvBfloat16Shape& shape, const float* weights, void* packed) {
  const auto chosen = shape.parts == 3 ? pack_parts<3> : pack_parts<2>;
  chosen(shape, weights, packed);
}

}  // namespace conv_bfloat16
}  // namespace softneuro::SN_ISA
