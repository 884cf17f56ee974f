// conv_broadcast over Vf. Contract: conv_broadcast.h. A strip's columns are [channel][vector][lane], then the single
// pixel's channels, which are a dot product's: its sums are lanes of channels until the end.
#pragma once

#include "kernels/conv_broadcast/conv_broadcast.h"
#include "kernels/store/rest.h"
#include "kernels/store/tiles.h"
#include "kernels/unroll.h"
#include "simd/hold.h"

namespace softneuro::SN_ISA {
namespace conv_broadcast {

// Output channels by vectors of pixels in registers, with room for a step's pixels and one broadcast.
constexpr int max_rows = registers >= 32 && lanes >= 8 ? 8 : 4;
constexpr int max_vectors = registers >= 32 ? 24 / max_rows : 3;
constexpr int tiles_per_block = lanes / max_rows;
// Floats from the weights in use to those being fetched. The pixels come in one stream, which the hardware sees.
constexpr int weights_ahead = 64;

using Strip = ConvBroadcastStrips::Strip;

inline size_t single_offset(int in_channels, int vectors) {
  return static_cast<size_t>(round_up(in_channels, lanes)) * vectors * lanes;
}

inline void turn(const ConvBroadcastArgs& args, int index, int block_begin, int block_end, float* columns) {
  const Strip strip = args.strips.at(index % args.strips.count);
  const float* src = args.src + index / args.strips.count * args.src_image;
  size_t offset[max_vectors * lanes + 1] = {};  // what fills up the last vector is any pixel
  for (int p = 0; p < strip.pixels(); ++p) {
    const int pixel = strip.begin + p;
    offset[p] = pixel / args.out_w * args.src_row + pixel % args.out_w * args.src_pixel;
  }
  const int wide = strip.vectors * lanes;
  float* single = columns + single_offset(args.in_channels, strip.vectors);
  for (int block = block_begin; block < block_end; ++block) {
    const float* from = src + block * args.src_plane;
    float* to = columns + static_cast<size_t>(block) * lanes * wide;
    for (int v = 0; v < strip.vectors; ++v) {
      Vf x[lanes];
      unroll<lanes>([&](auto i) { x[i] = load(from + offset[v * lanes + i]); });
      // Blocks are too far apart for the hardware to see them coming.
      unroll<lanes>([&](auto i) { prefetch(from + args.src_plane + offset[v * lanes + i]); });
      transpose(x);
      unroll<lanes>([&](auto i) { store(to + i * wide + v * lanes, x[i]); });
    }
    if (strip.single) store(single + block * lanes, load(from + offset[strip.valid]));
  }
}

struct Tile {
  const float* weights;  // of the first of the tile's output channels
  ptrdiff_t row;         // floats from output channel to output channel
  int channels;          // to sum
  const float *columns, *single;
  float* sums;         // [output channel][vector][lane]
  float* single_sums;  // [output channel][lane of input channels]
  const float* next;   // weights that later tiles want, to be in L2 by then
  int fetch;           // floats of them for every second channel, of which one line is fetched
  // What is read and written when the block is finished: the tile asks for so many vectors of it, `each` of them with
  // every `lanes` channels.
  const float* residual;
  float* dst;
  int lines, each;
};

template <int rows, int vectors>
SN_INLINE void accumulate(Vf (&sum)[rows * vectors], const float* weights, ptrdiff_t row, const float* columns) {
  Vf x[vectors];
  unroll<vectors>([&](auto v) { x[v] = load(columns + v * lanes); });
  unroll<rows>([&](auto i) {
    const Vf w = set(weights[i * row]);
    unroll<vectors>([&](auto v) { sum[i * vectors + v] = fma(w, x[v], sum[i * vectors + v]); });
  });
}

// So many channels of the single pixel.
template <int rows>
SN_INLINE void add_single(const Tile& t, const float* weights, Vf pixel, int channels) {
  unroll<rows>([&](auto i) {
    const float* from = weights + i * t.row;
    const Vf w = channels == lanes ? load(from) : load_n(from, channels);
    float* sum = t.single_sums + i * lanes;
    store(sum, fma(w, pixel, load(sum)));
  });
}

template <int rows, int vectors, bool single>
[[gnu::flatten]] void compute_tile(const Tile& t) {
  Vf sum[rows * vectors];
  unroll<rows * vectors>([&](auto i) { sum[i] = zero(); });
  // These stay in memory, as there is one use of them for every `lanes` of the others.
  if constexpr (single) unroll<rows>([&](auto i) { store(t.single_sums + i * lanes, zero()); });
  const float *weights = t.weights, *columns = t.columns, *pixel = t.single, *next = t.next;
  int left = t.channels, line = 0;
  for (; left >= lanes; left -= lanes, weights += lanes) {
    if constexpr (single) {
      add_single<rows>(t, weights, load(pixel), lanes);
      pixel += lanes;
    }
    for (const int end = line + t.each < t.lines ? line + t.each : t.lines; line < end; ++line) {
      prefetch(t.residual + line * lanes);
      prefetch_to_write(t.dst + line * lanes);
    }
    // One line at a time: a burst of them would take all the buffers that the pixels' lines come through.
    const float* ahead = weights + weights_ahead;
    for (int l = 0; l < lanes; l += 4) {
      unroll<4>([&](auto j) {
        accumulate<rows, vectors>(sum, weights + l + j, t.row, columns + j * vectors * lanes);
        in_order();
        if constexpr (j % 2 == 0) {
          prefetch_l2(next);
          next += t.fetch;
        } else {
          prefetch(ahead);
          ahead += t.row;
        }
      });
      columns += 4 * vectors * lanes;
    }
  }
  if (left > 0) {
    if constexpr (single) add_single<rows>(t, weights, load(pixel), left);
    for (; left > 0; --left, ++weights, columns += vectors * lanes) {
      accumulate<rows, vectors>(sum, weights, t.row, columns);
    }
  }
  unroll<rows * vectors>([&](auto i) { store(t.sums + i * lanes, sum[i]); });
}

using ComputeTile = void (*)(const Tile&);
struct TileTable {
  ComputeTile compute[max_rows + 1][max_vectors + 1][2] = {};
};
constexpr TileTable tile_table() {
  TileTable table;
  unroll<max_rows>([&](auto i) {
    unroll<max_vectors>([&](auto v) {
      table.compute[i + 1][v + 1][0] = compute_tile<i + 1, v + 1, false>;
      table.compute[i + 1][v + 1][1] = compute_tile<i + 1, v + 1, true>;
    });
  });
  return table;
}
constexpr TileTable tiles = tile_table();

// Sums of a block of output channels by a strip.
struct Sums {
  alignas(64) float vectors[lanes * max_vectors * lanes];
  alignas(64) float single[lanes * lanes];
};

// Turns the sums back. dst and residual (null: none) are at the strip's first pixel; factors and bias may be null.
[[gnu::flatten]] inline void finish_strip(const Sums& sums, const Strip& strip, const float* factors, const float* bias,
                                          const Activation& activation, const float* residual, float* dst) {
  const ClampBounds bounds = clamp_bounds(activation);
  const Vf factor = factors != nullptr ? load(factors) : set(1), offset = bias != nullptr ? load(bias) : zero();
  const Vf lo = set(bounds.lo), hi = set(bounds.hi);
  const auto finish = [&](int pixel, Vf x) {
    x = fma(x, factor, offset);
    if (residual != nullptr) x = x + Reading<float>().value(residual + pixel * lanes);
    Writing<float>().put(dst + pixel * lanes, clamp(x, lo, hi));
  };
  for (int v = 0; v < strip.vectors; ++v) {
    Vf x[lanes];
    unroll<lanes>([&](auto i) { x[i] = load(sums.vectors + (i * strip.vectors + v) * lanes); });
    transpose(x);
    unroll<lanes>([&](auto i) {
      if (v * lanes + i < strip.valid) finish(v * lanes + i, x[i]);
    });
  }
  if (strip.single) {
    Vf x[lanes];
    unroll<lanes>([&](auto i) { x[i] = load(sums.single + i * lanes); });
    transpose(x);
    unroll<lanes - 1>([&](auto i) { x[0] = x[0] + x[i + 1]; });
    finish(strip.valid, x[0]);
  }
}

inline void run(const ConvBroadcastArgs& args, int strip_begin, int strip_end, int block_begin, int block_end,
                const float* columns) {
  const int c = args.in_channels, out_blocks = ceil_div(args.out_channels, lanes);
  const size_t plane = static_cast<size_t>(args.strips.pixels) * lanes;
  const Epilogue& epilogue = args.epilogue;
  const float* residuals = epilogue.residual.f32();
  Sums sums{};  // what a block does not fill is dropped later, but read
  for (int block = block_begin; block < block_end; ++block) {
    const int left = args.out_channels - block * lanes, channels = left < lanes ? left : lanes;
    const float* next = args.weights + static_cast<size_t>(block + 1) * lanes * c;
    // The tiles of a block together fetch the next block's weights, once.
    const int fetch = block + 1 < block_end ? ceil_div(2 * lanes, (strip_end - strip_begin) * tiles_per_block) : 0;
    for (int index = strip_begin; index < strip_end; ++index) {
      const Strip strip = args.strips.at(index % args.strips.count);
      const int image = index / args.strips.count;
      const size_t at = block * plane + static_cast<size_t>(strip.begin) * lanes;
      float* dst = args.dst + image * args.dst_image + at;
      const float* residual = residuals != nullptr ? residuals + image * args.residual_image + at : nullptr;
      Tile t;
      t.row = t.channels = c;
      t.columns = columns + (index - strip_begin) * conv_broadcast_strip_size(c, lanes, max_vectors);
      t.single = t.columns + single_offset(c, strip.vectors);
      t.fetch = fetch;
      t.lines = ceil_div(strip.pixels(), tiles_per_block);
      t.each = ceil_div(t.lines, c < lanes ? 1 : c / lanes);
      for (int row = 0; row < channels; row += max_rows) {
        const int rows = channels - row < max_rows ? channels - row : max_rows;
        const int pixel = row / max_rows * t.lines;
        t.weights = args.weights + (static_cast<size_t>(block) * lanes + row) * c;
        t.sums = sums.vectors + row * strip.vectors * lanes;
        t.single_sums = sums.single + row * lanes;
        t.next = next;
        t.dst = dst + pixel * lanes;
        t.residual = (residual != nullptr ? residual : dst) + pixel * lanes;
        tiles.compute[rows][strip.vectors][strip.single](t);
        next += static_cast<size_t>(c) / 2 * fetch;
      }
      const float* factors = args.factors != nullptr ? args.factors + block * lanes : nullptr;
      const float* bias = epilogue.bias != nullptr ? epilogue.bias + block * lanes : nullptr;
      finish_strip(sums, strip, factors, bias, epilogue.activation, residual, dst);
      finish_written(epilogue.activation, is_clamp(epilogue.activation.kind), dst, strip.pixels(),
                     block + 1 == out_blocks ? channels : lanes);
    }
  }
}

}  // namespace conv_broadcast
}  // namespace softneuro::SN_ISA

namespace softneuro {

SN_KERNEL_TABLE(ConvBroadcastKernels, conv_broadcast) = {
    .block = SN_ISA::lanes,
    .max_vectors = SN_ISA::conv_broadcast::max_vectors,
    .turn = SN_ISA::conv_broadcast::turn,
    .run = SN_ISA::conv_broadcast::run,
};

}  // namespace softneuro
