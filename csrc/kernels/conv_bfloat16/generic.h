// conv_bfloat16 over Tiles. Contract: conv_bfloat16.h.
#pragma once

#include "kernels/conv_bfloat16/conv_bfloat16.h"
#include "kernels/conv_bfloat16/tiles.h"
#include "kernels/finish_sums.h"
#include "kernels/integers.h"

namespace softneuro::SN_ISA {
namespace conv_bfloat16 {

constexpr size_t weight_tile = lanes * row_bytes;

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
  float* sums;   // a tile
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
    sums = reinterpret_cast<float*>(take(tile_rows * row_bytes));
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

template <int parts>
inline void fill(const Band& band) {
  const ConvBfloat16Shape& s = band.args.shape;
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
        for (int j = 0; j < planes.width; ++j, to += planes.pixel) {
          const int x = first_x + j * s.x.stride;
          if (y < 0 || y >= s.y.in || x < 0 || x >= s.x.in) {
            __builtin_memset(to, 0, planes.pixel);
          } else {
            split_pixel<parts>(src + (static_cast<size_t>(y) * s.x.in + x) * lanes, block, blocks, to);
          }
        }
      }
    }
  }
}

// Sums of a tile: outputs from `at` on, counted through the band's planes.
inline void finish(const Band& band, const float* sums, int output_block, int at) {
  const ConvBfloat16Shape& s = band.args.shape;
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

// One pair of input blocks and one tap: a tile of one part of either side at a time, in an order that loads few of
// them.
template <int parts, int m, int n>
SN_INLINE void accumulate(Tiles& tiles, const char* pixels, const char* weights) {
  constexpr size_t pixel = parts * row_bytes;
  const auto take_pixels = [&](int part) __attribute__((always_inline)) {
    tiles.load<4>(pixels + part * row_bytes, pixel);
    if constexpr (m == 2) tiles.load<5>(pixels + part * row_bytes + tile_rows * pixel, pixel);
  };
  const auto take_weights = [&](int part) __attribute__((always_inline)) {
    tiles.load<6, lanes>(weights + part * n * weight_tile, row_bytes);
    if constexpr (n == 2) tiles.load<7, lanes>(weights + (part * n + 1) * weight_tile, row_bytes);
  };
  if constexpr (parts == 3) {
    take_pixels(0), take_weights(2);
    multiply<m, n>(tiles);
    take_weights(1);
    multiply<m, n>(tiles);
    take_pixels(1);
    multiply<m, n>(tiles);
    take_weights(0);
    multiply<m, n>(tiles);
    take_pixels(2);
    multiply<m, n>(tiles);
    take_pixels(0);
    multiply<m, n>(tiles);
  } else {
    take_pixels(1), take_weights(0);
    multiply<m, n>(tiles);
    take_pixels(0);
    multiply<m, n>(tiles);
    take_weights(1);
    multiply<m, n>(tiles);
  }
}

template <int sum>
SN_INLINE void finish_tile_of(const Band& band, Tiles& tiles, int output_block, int at) {
  tiles.store<sum>(band.scratch.sums);
  finish(band, band.scratch.sums, output_block, at);
}

// m tiles of pixels from output `at` on, n blocks of output channels.
template <int parts, int m, int n>
void compute(const Band& band, Tiles& tiles, const char* weights, int output_block, int at) {
  const float* bias = band.args.epilogue.bias + output_block * lanes;
  tiles.load<0>(bias, 0);
  if constexpr (n == 2) tiles.load<1>(bias + lanes, 0);
  if constexpr (m == 2) tiles.load<2>(bias, 0);
  if constexpr (m == 2 && n == 2) tiles.load<3>(bias + lanes, 0);
  const char* pixels = band.scratch.planes + at * band.planes.pixel;
  const int taps = band.args.shape.taps();
  for (int p = 0; p < band.planes.pairs; ++p, pixels += band.planes.pair) {
    for (int tap = 0; tap < taps; ++tap, weights += parts * n * weight_tile) {
      accumulate<parts, m, n>(tiles, pixels + band.scratch.taps[tap], weights);
    }
  }
  finish_tile_of<0>(band, tiles, output_block, at);
  if constexpr (n == 2) finish_tile_of<1>(band, tiles, output_block + 1, at);
  if constexpr (m == 2) finish_tile_of<2>(band, tiles, output_block, at + tile_rows);
  if constexpr (m == 2 && n == 2) finish_tile_of<3>(band, tiles, output_block + 1, at + tile_rows);
}

template <int parts, int n>
void run_panel(const Band& band, Tiles& tiles, const char* weights, int output_block) {
  const int outputs = (band.rows - 1) * band.planes.width + band.args.shape.x.out;
  for (int at = 0; at < outputs; at += 2 * tile_rows) {
    if (outputs - at > tile_rows) {
      compute<parts, 2, n>(band, tiles, weights, output_block, at);
    } else {
      compute<parts, 1, n>(band, tiles, weights, output_block, at);
    }
  }
}

template <int parts>
inline void run_parts(const ConvBfloat16Args& args, int panel_begin, int panel_end, int row_begin, int row_end,
                      void* memory) {
  const ConvBfloat16Shape& s = args.shape;
  const Planes planes(s, args.rows);
  const Scratch scratch(s, args.rows, static_cast<char*>(memory));
  for (int i = 0; i < s.y.kernel; ++i) {
    for (int j = 0; j < s.x.kernel; ++j) {
      const int phase = i % s.y.period() * s.x.phases() + j % s.x.period();
      scratch.taps[i * s.x.kernel + j] =
          phase * planes.phase + (static_cast<size_t>(s.y.offset(i)) * planes.width + s.x.offset(j)) * planes.pixel;
    }
  }
  const int blocks = ceil_div(s.out_channels, lanes);
  const size_t block_bytes = parts * weight_tile * planes.pairs * s.taps();
  Tiles tiles;
  for (int row = row_begin; row < row_end; row += args.rows) {
    const Band band{args, planes, scratch, row, row_end - row < args.rows ? row_end - row : args.rows};
    if (panel_begin < panel_end) fill<parts>(band);
    for (int panel = panel_begin; panel < panel_end; ++panel) {
      const int output_block = 2 * panel;
      const char* weights = static_cast<const char*>(args.weights) + output_block * block_bytes;
      if (output_block + 1 < blocks) {
        run_panel<parts, 2>(band, tiles, weights, output_block);
      } else {
        run_panel<parts, 1>(band, tiles, weights, output_block);
      }
    }
  }
}

inline void run(const ConvBfloat16Args& args, int panel_begin, int panel_end, int row_begin, int row_end,
                void* memory) {
  const auto chosen = args.shape.parts == 3 ? run_parts<3> : run_parts<2>;
  chosen(args, panel_begin, panel_end, row_begin, row_end, memory);
}

}  // namespace conv_bfloat16
}  // namespace softneuro::SN_ISA

namespace softneuro {

extern const ConvBfloat16Kernels SN_ISA_NAME(conv_bfloat16);
const ConvBfloat16Kernels SN_ISA_NAME(conv_bfloat16) = {
    .block = SN_ISA::lanes,
    .scratch_bytes = SN_ISA::conv_bfloat16::scratch_bytes,
    .run = SN_ISA::conv_bfloat16::run,
};

}  // namespace softneuro
