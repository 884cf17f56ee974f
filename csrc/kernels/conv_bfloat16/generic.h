// conv_bfloat16 over Tiles. Contract: conv_bfloat16.h.
#pragma once

#include "kernels/conv_bfloat16/pack.h"
#include "kernels/conv_bfloat16/unfinished.h"
#include "kernels/unroll.h"

namespace softneuro::SN_ISA {
namespace conv_bfloat16 {

// Tiles 0 ... 3 are sums: tile a * n + b of the a-th tile of pixels and the b-th block of output channels. Pixels are
// in tiles 4 and 5, weights in 6 and 7.

// How often `between` is called in each of the two below, at least in the third.
template <int parts, int n>
constexpr int pauses = n == 2 ? (parts == 3 ? 6 : 3) : 1;

// One pair of input blocks and one tap: one part of either side at a time, in an order that loads few tiles.
template <int parts, int m, class Between>
SN_INLINE void accumulate_pair(Tiles& tiles, const char* pixels, const char* weights, const Between& between) {
  constexpr size_t pixel = parts * row_bytes;
  const auto take_pixels = [&](int part) __attribute__((always_inline)) {
    tiles.load<4>(pixels + part * row_bytes, pixel);
    if constexpr (m == 2) tiles.load<5>(pixels + part * row_bytes + tile_rows * pixel, pixel);
  };
  const auto take_weights = [&](int part) __attribute__((always_inline)) {
    tiles.load<6, lanes>(weights + 2 * part * weight_tile, row_bytes);
    tiles.load<7, lanes>(weights + (2 * part + 1) * weight_tile, row_bytes);
  };
  const auto multiply = [&]() __attribute__((always_inline)) {
    tiles.multiply<0, 4, 6>();
    tiles.multiply<1, 4, 7>();
    if constexpr (m == 2) tiles.multiply<2, 5, 6>(), tiles.multiply<3, 5, 7>();
    between();
  };
  if constexpr (parts == 3) {
    take_pixels(0), take_weights(2), multiply();
    take_weights(1), multiply();
    take_pixels(1), multiply();
    take_weights(0), multiply();
    take_pixels(2), multiply();
    take_pixels(0), multiply();
  } else {
    take_pixels(1), take_weights(0), multiply();
    take_pixels(0), multiply();
    take_weights(1), multiply();
  }
}

// The same for one block of output channels, whose weights are loaded once for up to four tiles of pixels. They come
// from afar then, and are asked for some steps ahead: the machine's own prefetching begins anew in every page. 8 KiB
// are best of 2 to 32 on an Intel server core; without any a 7x7 map of 512 channels takes 1.4 times as long.
constexpr size_t bytes_ahead = 8192;
template <int parts, int m, class Between>
SN_INLINE void accumulate_single(Tiles& tiles, const char* pixels, const char* weights, const Between& between) {
  constexpr size_t pixel = parts * row_bytes, step = parts * weight_tile;
  tiles.load<6, lanes>(weights, row_bytes);
  tiles.load<7, lanes>(weights + weight_tile, row_bytes);
  unroll<m>([&](auto a) __attribute__((always_inline)) {
    const char* from = pixels + a * tile_rows * pixel;
    tiles.load<4>(from, pixel);
    tiles.load<5>(from + row_bytes, pixel);
    for (size_t i = a * 64; i < step; i += m * 64) prefetch(reinterpret_cast<const float*>(weights + bytes_ahead + i));
    tiles.multiply<a, 4, 6>();
    tiles.multiply<a, 4, 7>();
    tiles.multiply<a, 5, 6>();
    if constexpr (parts == 3) {
      tiles.load<4>(from + 2 * row_bytes, pixel);
      tiles.multiply<a, 5, 7>();
      tiles.multiply<a, 4, 6>();
    }
  });
  if constexpr (parts == 3) {
    tiles.load<7, lanes>(weights + 2 * weight_tile, row_bytes);
    unroll<m>([&](auto a) __attribute__((always_inline)) {
      tiles.load<4>(pixels + a * tile_rows * pixel, pixel);
      tiles.multiply<a, 4, 7>();
    });
  }
  between();
}

// One block of input channels alone, whose rows are two parts each.
template <int parts, int m, int n, class Between>
SN_INLINE void accumulate_half(Tiles& tiles, const char* pixels, const char* weights, const Between& between) {
  constexpr size_t pixel = parts * row_bytes;
  if constexpr (n == 2) {
    const auto multiply = [&](int tile) __attribute__((always_inline)) {
      tiles.load<6, lanes>(weights + 2 * tile * weight_tile, row_bytes);
      tiles.load<7, lanes>(weights + (2 * tile + 1) * weight_tile, row_bytes);
      tiles.multiply<0, 4, 6>();
      tiles.multiply<1, 4, 7>();
      if constexpr (m == 2) tiles.multiply<2, 5, 6>(), tiles.multiply<3, 5, 7>();
      between();
    };
    const auto take_pixels = [&](int row) __attribute__((always_inline)) {
      tiles.load<4>(pixels + row * row_bytes, pixel);
      if constexpr (m == 2) tiles.load<5>(pixels + row * row_bytes + tile_rows * pixel, pixel);
    };
    if constexpr (parts == 3) take_pixels(1), multiply(2);
    take_pixels(0), multiply(1), multiply(0);
  } else {
    tiles.load<6, lanes>(weights, row_bytes);
    tiles.load<7, lanes>(weights + weight_tile, row_bytes);
    if constexpr (parts == 3) tiles.load<5, lanes>(weights + 2 * weight_tile, row_bytes);
    unroll<m>([&](auto a) __attribute__((always_inline)) {
      const char* from = pixels + a * tile_rows * pixel;
      if constexpr (parts == 3) tiles.load<4>(from + row_bytes, pixel), tiles.multiply<a, 4, 5>();
      tiles.load<4>(from, pixel);
      tiles.multiply<a, 4, 7>();
      tiles.multiply<a, 4, 6>();
    });
    between();
  }
}

// m tiles of pixels from output `at` on, n blocks of output channels.
template <int parts, int m, int n>
void compute(const Band& band, Tiles& tiles, Unfinished& unfinished, const char* weights, int output_block, int at) {
  // Sums that go on have their bias already.
  alignas(64) static constexpr float zeros[n * lanes] = {};
  const float* bias = band.pairs_before > 0 ? zeros : band.args.epilogue.bias + output_block * lanes;
  unroll<m * n>([&](auto i) __attribute__((always_inline)) { tiles.load<i>(bias + i % n * lanes, 0); });
  const char* pixels = band.scratch.planes + at * band.planes.pixel;
  const int taps = band.args.shape.taps(), steps = band.planes.pairs * taps;
  // Chunks of the last sums are spread evenly among the pauses, and so are the pixels of the next step, which come from
  // L2 where planes are long; where one block of outputs is computed, weights take all the room for that.
  const int all_pauses = steps * pauses<parts, n>;
  constexpr int chunks = most_sums * tile_rows / Unfinished::chunk;
  constexpr int lines = n == 2 ? ceil_div(m * tile_rows * parts, pauses<parts, n>) : 0;
  int due = 0;
  const char* wanted = pixels;
  const auto between = [&]() __attribute__((always_inline)) {
    for (due += chunks; due >= all_pauses; due -= all_pauses) unfinished.step();
    if (lines > 0 && taps == 1) {
      for (int i = 0; i < lines; ++i) prefetch(reinterpret_cast<const float*>(wanted + i * row_bytes));
      wanted += lines * row_bytes;
    }
  };
  const char* const next_pixels = pixels + most_sums / n * tile_rows * band.planes.pixel;
  for (int p = 0; p < band.planes.pairs; ++p, pixels += band.planes.pair) {
    wanted = p + 1 < band.planes.pairs ? pixels + band.planes.pair : next_pixels;
    for (int tap = 0; tap < taps; ++tap, weights += parts * n * weight_tile) {
      const char* const from = pixels + band.scratch.taps[tap];
      if (band.args.shape.in_channels - 2 * p * lanes <= lanes) {
        accumulate_half<parts, m, n>(tiles, from, weights, between);
      } else if constexpr (n == 2) {
        accumulate_pair<parts, m>(tiles, from, weights, between);
      } else {
        accumulate_single<parts, m>(tiles, from, weights, between);
      }
    }
  }
  unfinished.finish();
  // By block: a tile of sums after the other.
  constexpr int tile = tile_rows * lanes;
  float* const sums = unfinished.next_sums();
  unroll<m * n>([&](auto i) __attribute__((always_inline)) { tiles.store<i>(sums + (i % n * m + i / n) * tile); });
  unfinished.add<m, n>(band, output_block, at);
}

template <int parts, int n>
void run_panel(const Band& band, Tiles& tiles, Unfinished& unfinished, const char* weights, int output_block) {
  constexpr int most = most_sums / n;
  const int outputs = (band.rows - 1) * band.planes.width + band.args.shape.x.out;
  for (int at = 0; at < outputs; at += most * tile_rows) {
    const int left = ceil_div(outputs - at, tile_rows);
    unroll<most>([&](auto i) {
      constexpr int m = i + 1;
      if (m == (left < most ? left : most)) compute<parts, m, n>(band, tiles, unfinished, weights, output_block, at);
    });
  }
}

template <int parts>
inline void run_panels(const Band& band, Tiles& tiles, Unfinished& unfinished, int panel_begin, int panel_end) {
  const ConvBfloat16Shape& s = band.args.shape;
  const int blocks = ceil_div(s.out_channels, lanes);
  const size_t pair_bytes = parts * weight_tile * s.taps();  // of an output block
  for (int panel = panel_begin; panel < panel_end; ++panel) {
    const int output_block = s.panel * panel;
    const char* weights = static_cast<const char*>(band.args.weights) + output_block * pair_bytes * band.all_pairs;
    if (s.panel == 2 && output_block + 1 < blocks) {
      run_panel<parts, 2>(band, tiles, unfinished, weights + 2 * pair_bytes * band.pairs_before, output_block);
    } else {
      run_panel<parts, 1>(band, tiles, unfinished, weights + pair_bytes * band.pairs_before, output_block);
    }
  }
}

// The products with the input channels from `first` on that are split at a time, added to those before.
inline ConvBfloat16Args depth_args(const ConvBfloat16Args& args, int first) {
  ConvBfloat16Args part = args;
  part.shape = depth_shape(args, first);
  part.src += args.src_pixel != 0 ? first : first / lanes * src_plane(args);
  if (first > 0) part.epilogue.residual = args.dst;
  if (first + part.shape.in_channels < args.shape.in_channels) part.epilogue.activation = {};
  return part;
}

template <int parts>
inline void run_parts(const ConvBfloat16Args& args, int panel_begin, int panel_end, int row_begin, int row_end,
                      void* memory) {
  if (panel_begin >= panel_end) return;
  const ConvBfloat16Shape s = depth_shape(args, 0);
  const Planes planes(s, args.rows);
  const Scratch scratch(s, args.rows, static_cast<char*>(memory));
  for (int i = 0; i < s.y.kernel; ++i) {
    for (int j = 0; j < s.x.kernel; ++j) {
      const int phase = i % s.y.period() * s.x.phases() + j % s.x.period();
      scratch.taps[i * s.x.kernel + j] =
          phase * planes.phase + (static_cast<size_t>(s.y.offset(i)) * planes.width + s.x.offset(j)) * planes.pixel;
    }
  }
  Tiles tiles;
  // All rows of the one depth before the next: its weights stay in the last cache, if not in a nearer one.
  int first = 0;
  do {
    const ConvBfloat16Args part = depth_args(args, first);
    const Planes own(part.shape, args.rows);
    Unfinished unfinished(part, scratch.sums);
    for (int row = row_begin; row < row_end; row += args.rows) {
      const int rows = row_end - row < args.rows ? row_end - row : args.rows;
      const Band band{part, own, scratch, row, rows, first / (2 * lanes), ceil_div(args.shape.in_channels, 2 * lanes)};
      fill<parts>(band, 0, own.pairs);
      run_panels<parts>(band, tiles, unfinished, panel_begin, panel_end);
    }
    unfinished.finish();
    first += part.shape.in_channels;
  } while (first < args.shape.in_channels);
}

inline void run(const ConvBfloat16Args& args, int panel_begin, int panel_end, int row_begin, int row_end,
                void* memory) {
  const auto chosen = args.shape.parts == 3 ? run_parts<3> : run_parts<2>;
  chosen(args, panel_begin, panel_end, row_begin, row_end, memory);
}

// The band of a column's rows that planes which begin with row `first` hold.
struct ColumnBand {
  Planes planes;
  size_t tap = 0;
  Scratch scratch;
  Band band;

  ColumnBand(const ConvBfloat16Args& args, int first, int row_begin, int row_end, const void* memory, void* sums)
      : planes(args.shape, args.rows), band{args, planes, scratch, row_begin, row_end - row_begin, 0, planes.pairs} {
    scratch.taps = &tap;
    scratch.sums = static_cast<float*>(sums);
    scratch.planes = const_cast<char*>(static_cast<const char*>(memory)) + (row_begin - first) * planes.pixel;
  }
};

inline void split_column(const ConvBfloat16Args& args, int pair_begin, int pair_end, int first, int row_begin,
                         int row_end, void* memory) {
  const ColumnBand column(args, first, row_begin, row_end, memory, nullptr);
  const auto chosen = args.shape.parts == 3 ? fill<3> : fill<2>;
  chosen(column.band, pair_begin, pair_end);
}

inline void multiply_column(const ConvBfloat16Args& args, int panel_begin, int panel_end, int first, int row_begin,
                            int row_end, const void* memory, void* sums) {
  const ColumnBand column(args, first, row_begin, row_end, memory, sums);
  Tiles tiles;
  Unfinished unfinished(args, column.scratch.sums);
  const auto chosen = args.shape.parts == 3 ? run_panels<3> : run_panels<2>;
  chosen(column.band, tiles, unfinished, panel_begin, panel_end);
  unfinished.finish();
}

}  // namespace conv_bfloat16
}  // namespace softneuro::SN_ISA

namespace softneuro {

SN_KERNEL_TABLE(ConvBfloat16Kernels, conv_bfloat16) = {
    .block = SN_ISA::lanes,
    .pack = SN_ISA::conv_bfloat16::pack,
    .scratch_bytes = SN_ISA::conv_bfloat16::scratch_bytes,
    .run = SN_ISA::conv_bfloat16::run,
    .planes_bytes = SN_ISA::conv_bfloat16::planes_bytes,
    .sums_bytes = SN_ISA::conv_bfloat16::sums_bytes,
    .split_column = SN_ISA::conv_bfloat16::split_column,
    .multiply_column = SN_ISA::conv_bfloat16::multiply_column,
};

}  // namespace softneuro
