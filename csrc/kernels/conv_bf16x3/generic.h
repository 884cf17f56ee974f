// conv_bf16x3 over Tiles. Contract: conv_bf16x3.h.
#pragma once

#include "kernels/conv_bf16x3/conv_bf16x3.h"
#include "kernels/conv_bf16x3/tiles.h"
#include "kernels/finish_sums.h"
#include "kernels/integers.h"

namespace softneuro::SN_ISA {
namespace conv_bf16x3 {

constexpr int pair = 2 * lanes;               // channels of a first factor's row
constexpr size_t pixel_bytes = 2 * 2 * pair;  // of one pixel and pair of blocks: first parts, then second parts
constexpr size_t low_bytes = 2 * pair;        // from first to second parts
constexpr size_t weight_tile = lanes * row_bytes;

// A plane holds one phase of one pair of input blocks; the phases of a pair follow each other.
struct Planes {
  int width, height;   // of a phase
  size_t phase, pair;  // bytes
  int pairs;

  Planes(const ConvBf16x3Shape& s, int rows)
      : width(s.x.samples(s.x.out)),
        height(s.y.samples(rows)),
        // What the last tile reads past the last output belongs to no output.
        phase((static_cast<size_t>(width) * height + 2 * tile_rows) * pixel_bytes),
        pair(phase * s.y.phases() * s.x.phases()),
        pairs(ceil_div(s.in_channels, 2 * lanes)) {}
};

struct Scratch {
  size_t* taps;  // where each begins in a pair's planes, bytes
  float* sums;   // two tiles
  char* planes;
  size_t bytes = 0;

  Scratch(const ConvBf16x3Shape& s, int rows, char* memory) {
    const auto take = [&](size_t count) {
      char* at = memory + bytes;
      bytes += (count + 63) / 64 * 64;
      return at;
    };
    const Planes layout(s, rows);
    taps = reinterpret_cast<size_t*>(take(sizeof(size_t) * s.taps()));
    sums = reinterpret_cast<float*>(take(2 * tile_rows * row_bytes));
    planes = take(layout.pair * layout.pairs);
  }
};

inline size_t scratch_bytes(const ConvBf16x3Shape& shape, int rows) { return Scratch(shape, rows, nullptr).bytes; }

struct Band {
  const ConvBf16x3Args& args;
  const Planes& planes;
  const Scratch& scratch;
  int row, rows;  // of the output
};

SN_INLINE void split_pixel(const float* src, size_t block, int blocks, char* to) {
  auto* const high = reinterpret_cast<uint16_t*>(to);
  auto* const low = reinterpret_cast<uint16_t*>(to + low_bytes);
  split(src, high, low);
  if (blocks > 1) {
    split(src + block, high + lanes, low + lanes);
  } else {
    __builtin_memset(high + lanes, 0, lanes * 2);
    __builtin_memset(low + lanes, 0, lanes * 2);
  }
}

inline void fill(const Band& band) {
  const ConvBf16x3Shape& s = band.args.shape;
  const Planes& planes = band.planes;
  const size_t block = static_cast<size_t>(s.y.in) * s.x.in * lanes;
  const int in_blocks = ceil_div(s.in_channels, lanes), height = s.y.samples(band.rows);
  for (int p = 0; p < planes.pairs; ++p) {
    const float* src = band.args.src + 2 * p * block;
    const int blocks = in_blocks - 2 * p;
    for (int phase = 0; phase < s.y.phases() * s.x.phases(); ++phase) {
      char* to = band.scratch.planes + p * planes.pair + phase * planes.phase;
      const int first_y = phase / s.x.phases() * s.y.dilation % s.y.stride - s.y.pad + band.row * s.y.stride;
      const int first_x = phase % s.x.phases() * s.x.dilation % s.x.stride - s.x.pad;
      for (int i = 0; i < height; ++i) {
        const int y = first_y + i * s.y.stride;
        for (int j = 0; j < planes.width; ++j, to += pixel_bytes) {
          const int x = first_x + j * s.x.stride;
          if (y < 0 || y >= s.y.in || x < 0 || x >= s.x.in) {
            __builtin_memset(to, 0, pixel_bytes);
          } else {
            split_pixel(src + (static_cast<size_t>(y) * s.x.in + x) * lanes, block, blocks, to);
          }
        }
      }
    }
  }
}

// Sums of a tile: outputs from `at` on, counted through the band's planes.
inline void finish(const Band& band, const float* sums, int output_block, int at) {
  const ConvBf16x3Shape& s = band.args.shape;
  const int width = band.planes.width, rest = s.out_channels - output_block * lanes;
  const size_t plane = static_cast<size_t>(output_block) * s.y.out * s.x.out;
  const Epilogue& epilogue = band.args.epilogue;
  for (int row = 0; row < tile_rows;) {
    const int y = (at + row) / width, x = (at + row) % width;
    if (y >= band.rows) return;
    if (x >= s.x.out) {
      row += width - x;
      continue;
    }
    const int here = tile_rows - row, left = s.x.out - x, pixels = here < left ? here : left;
    const size_t first = (plane + static_cast<size_t>(band.row + y) * s.x.out + x) * lanes;
    float* dst = band.args.dst + first;
    for (int p = 0; p < pixels; ++p) {
      Vf sum[1] = {load(sums + (row + p) * lanes)};
      if (epilogue.residual != nullptr) sum[0] = sum[0] + load(epilogue.residual + first + p * lanes);
      finish_sums(sum, epilogue.activation);
      store(dst + p * lanes, sum[0]);
    }
    finish_rest(epilogue.activation, dst, pixels, rest < lanes ? rest : lanes);
    row += pixels;
  }
}

// Tiles 0 ... 3 are sums, two for each tile of pixels, 4 and 5 pixels, 6 and 7 weights.
template <int m, int n>
SN_INLINE void multiply(Tiles& tiles) {
  tiles.multiply<0, 4, 6>();
  if constexpr (n == 2) tiles.multiply<1, 4, 7>();
  if constexpr (m == 2) tiles.multiply<2, 5, 6>();
  if constexpr (m == 2 && n == 2) tiles.multiply<3, 5, 7>();
}

template <int m>
SN_INLINE void load_pixels(Tiles& tiles, const char* pixels) {
  tiles.load<4>(pixels, pixel_bytes);
  if constexpr (m == 2) tiles.load<5>(pixels + tile_rows * pixel_bytes, pixel_bytes);
}

template <int n>
SN_INLINE void load_weights(Tiles& tiles, const char* weights) {
  tiles.load<6, lanes>(weights, row_bytes);
  if constexpr (n == 2) tiles.load<7, lanes>(weights + weight_tile, row_bytes);
}

template <int sum>
SN_INLINE void finish_tile_of(const Band& band, Tiles& tiles, int output_block, int at) {
  tiles.store<sum>(band.scratch.sums);
  finish(band, band.scratch.sums, output_block, at);
}

// m tiles of pixels from output `at` on, n blocks of output channels.
template <int m, int n>
void compute(const Band& band, Tiles& tiles, const char* weights, int output_block, int at) {
  const float* bias = band.args.epilogue.bias + output_block * lanes;
  tiles.load<0>(bias, 0);
  if constexpr (n == 2) tiles.load<1>(bias + lanes, 0);
  if constexpr (m == 2) tiles.load<2>(bias, 0);
  if constexpr (m == 2 && n == 2) tiles.load<3>(bias + lanes, 0);
  const char* pixels = band.scratch.planes + at * pixel_bytes;
  const int taps = band.args.shape.taps();
  for (int p = 0; p < band.planes.pairs; ++p, pixels += band.planes.pair) {
    for (int tap = 0; tap < taps; ++tap, weights += 2 * n * weight_tile) {
      const char* from = pixels + band.scratch.taps[tap];
      load_pixels<m>(tiles, from + low_bytes);
      load_weights<n>(tiles, weights);
      multiply<m, n>(tiles);
      load_pixels<m>(tiles, from);
      multiply<m, n>(tiles);
      load_weights<n>(tiles, weights + n * weight_tile);
      multiply<m, n>(tiles);
    }
  }
  finish_tile_of<0>(band, tiles, output_block, at);
  if constexpr (n == 2) finish_tile_of<1>(band, tiles, output_block + 1, at);
  if constexpr (m == 2) finish_tile_of<2>(band, tiles, output_block, at + tile_rows);
  if constexpr (m == 2 && n == 2) finish_tile_of<3>(band, tiles, output_block + 1, at + tile_rows);
}

template <int n>
void run_panel(const Band& band, Tiles& tiles, const char* weights, int output_block) {
  const int outputs = (band.rows - 1) * band.planes.width + band.args.shape.x.out;
  for (int at = 0; at < outputs; at += 2 * tile_rows) {
    if (outputs - at > tile_rows) {
      compute<2, n>(band, tiles, weights, output_block, at);
    } else {
      compute<1, n>(band, tiles, weights, output_block, at);
    }
  }
}

inline void run(const ConvBf16x3Args& args, int panel_begin, int panel_end, int row_begin, int row_end, void* memory) {
  const ConvBf16x3Shape& s = args.shape;
  const Planes planes(s, args.rows);
  const Scratch scratch(s, args.rows, static_cast<char*>(memory));
  for (int i = 0; i < s.y.kernel; ++i) {
    for (int j = 0; j < s.x.kernel; ++j) {
      const int phase = i % s.y.period() * s.x.phases() + j % s.x.period();
      scratch.taps[i * s.x.kernel + j] =
          phase * planes.phase + (static_cast<size_t>(s.y.offset(i)) * planes.width + s.x.offset(j)) * pixel_bytes;
    }
  }
  const int blocks = ceil_div(s.out_channels, lanes);
  const size_t block_bytes = 2 * weight_tile * planes.pairs * s.taps();
  Tiles tiles;
  for (int row = row_begin; row < row_end; row += args.rows) {
    const Band band{args, planes, scratch, row, row_end - row < args.rows ? row_end - row : args.rows};
    if (panel_begin < panel_end) fill(band);
    for (int panel = panel_begin; panel < panel_end; ++panel) {
      const int output_block = 2 * panel;
      const char* weights = static_cast<const char*>(args.weights) + output_block * block_bytes;
      if (output_block + 1 < blocks) {
        run_panel<2>(band, tiles, weights, output_block);
      } else {
        run_panel<1>(band, tiles, weights, output_block);
      }
    }
  }
}

}  // namespace conv_bf16x3
}  // namespace softneuro::SN_ISA

namespace softneuro {

extern const ConvBf16x3Kernels SN_ISA_NAME(conv_bf16x3);
const ConvBf16x3Kernels SN_ISA_NAME(conv_bf16x3) = {
    .block = SN_ISA::lanes,
    .scratch_bytes = SN_ISA::conv_bf16x3::scratch_bytes,
    .run = SN_ISA::conv_bf16x3::run,
};

}  // namespace softneuro
