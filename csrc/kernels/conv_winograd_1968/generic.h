// conv_winograd_1968 over Vf. Contract: conv_winograd_1968.h.
#pragma once

#include <utility>

#include "base/cpu_traits.h"
#include "base/lines.h"
#include "kernels/conv_winograd_1968/layout.h"
#include "kernels/store/rest.h"
#include "kernels/store/tiles.h"
#include "kernels/winograd_1968/products.h"
#include "kernels/winograd_1968/samples.h"

namespace softneuro::SN_ISA {
namespace conv_winograd_1968 {

using namespace winograd_1968;

constexpr int max_tile = registers >= 32 ? 16 : 8;  // pixels

// Prepared pixels: [input block][pixel][lane], then of each what its sums start with and its scale.
struct Scratch {
  float *samples, *start, *scale;
  size_t block;  // floats from input block to input block: an odd number of lines, so that they differ in cache sets
  size_t floats;

  Scratch(const PointwiseShape& s, int pixels, float* memory) {
    block = static_cast<size_t>(odd_lines(pixels * lanes));
    samples = memory;
    take_terms(pixels, memory, static_cast<size_t>(ceil_div(s.in_channels, lanes)) * block);
  }
  // Lays out what pixels from `pixel` on need.
  Scratch(const ConvWinograd1968Args& args, int pixel, float* memory) : Scratch(args.shape, args.row_block, memory) {
    if (!args.in_place) return;
    block = plane(args);
    samples = const_cast<float*>(args.src) + static_cast<size_t>(pixel) * lanes;
    take_terms(args.row_block, memory, 0);
  }

  static size_t plane(const ConvWinograd1968Args& args) {
    return args.src_plane != 0 ? args.src_plane : static_cast<size_t>(args.shape.h) * args.shape.w * lanes;
  }

 private:
  void take_terms(int pixels, float* memory, size_t before) {
    // Vectors are written, from any pixel on.
    const int each = round_up(pixels + lanes, 16);
    start = memory + before;
    scale = start + each;
    floats = before + 2 * static_cast<size_t>(each);
  }
};

inline size_t scratch_bytes(const ConvWinograd1968Args& args) {
  return Scratch(args, 0, nullptr).floats * sizeof(float);
}

inline void prepare(const ConvWinograd1968Args& args, int pixel, int count, void* memory) {
  const PointwiseShape& s = args.shape;
  const Scratch scratch(args, pixel, static_cast<float*>(memory));
  Pixels pixels{};
  const bool rows = args.src_row != 0;
  pixels.distance = rows ? args.src_row : s.stride_w * lanes;
  pixels.plane = rows ? lanes : Scratch::plane(args);
  pixels.blocks = ceil_div(s.in_channels, lanes);
  if (rows) pixels.last = s.in_channels - (pixels.blocks - 1) * lanes;
  // With a stride, those of a row are evenly far from each other.
  const int wide = rows || s.dense() ? pixel + count : s.out_w;
  const size_t row = static_cast<size_t>(s.stride_h) * s.w * lanes;
  int y = pixel / wide, x = pixel % wide;
  for (int first = 0; first < count; first += pixels.count) {
    pixels.from = args.src + y * row + x * pixels.distance;
    const int left = count - first < wide - x ? count - first : wide - x;
    pixels.count = left < lanes ? left : lanes;
    winograd_1968::prepare(pixels, scratch.samples + first * lanes, scratch.block, scratch.start + first,
                           scratch.scale + first);
    x += pixels.count;
    if (x == wide) x = 0, ++y;
  }
}

struct Tile {
  const float* a;  // prepared pixels
  size_t a_block;
  const float *start, *scale;  // of the pixels
  const float* panel;
  const ConvWinograd1968Layout* layout;
  bool half;          // of the last input block only the lower half counts
  const float* next;  // the next panel's weights, which the first tile fetches into L2; null: none
  float* dst;
  const float* residual;  // null: none
  size_t step;            // floats from pixel to pixel of both
  const Activation* activation;
};

// `count` tiles one behind the other; moves a, start, scale, dst and residual on.
// narrow: of the output block only the lower half counts.
template <int tile, bool narrow>
[[gnu::flatten]] void compute_tiles(Tile& t, int count) {
  const int whole = t.half ? t.layout->in_blocks - 1 : t.layout->in_blocks;
  const float* const of_block = t.panel + t.layout->products;
  for (; count > 0; --count) {
    const float *a = t.a, *w = t.panel;
    Vf sum[tile];
    const Vf start = load(of_block);
    unroll<tile>([&](int p) { sum[p] = start + set(t.start[p]); });
    for (int cb = 0; cb < whole; ++cb, a += t.a_block, w += lanes * lanes) {
      if (cb + 1 < t.layout->in_blocks) {
        for (int p = 0; p < tile; ++p) prefetch(a + t.a_block + p * lanes);
      }
      if (t.next != nullptr) {
        for (int i = 0; i < lanes * lanes; i += 16) prefetch_l2(t.next + i);
        t.next += lanes * lanes;
      }
      multiply_block<tile, narrow>(sum, a, w);
    }
    if (t.half) multiply_half_block<tile, narrow>(sum, a, w);
    t.next = nullptr;
    const Vf scale = load(of_block + lanes), bias = load(of_block + 2 * lanes);
    // One after the other: the product of both may be beyond float32 where the result is not.
    unroll<tile>([&](int p) { sum[p] = fma(sum[p] * scale, set(t.scale[p]), bias); });
    finish_tile<1, tile>(sum, true, t.activation, t.dst, t.residual, 0, t.step);
    t.a += tile * lanes, t.start += tile, t.scale += tile, t.dst += tile * t.step;
    if (t.residual != nullptr) t.residual += tile * t.step;
  }
}

using ComputeTiles = void (*)(Tile&, int count);
template <int largest>
constexpr auto all_tiles() {
  struct {
    ComputeTiles of[2][largest + 1];  // [narrow][pixels]
  } table{};
  unroll<largest>([&](auto p) {
    table.of[0][p + 1] = compute_tiles<p + 1, false>;
    table.of[1][p + 1] = compute_tiles<p + 1, has_half>;
  });
  return table;
}
constexpr auto tiles = all_tiles<max_tile>();

// Computes a matrix's last columns, fewer than a vector: tiles of `length` rows, `longer` of them with one more.
inline void run_narrow(Tile& tile, int count, int length, int longer, int columns) {
  alignas(64) float sums[max_tile * lanes];
  float* dst = tile.dst;
  const float* residual = tile.residual;
  const size_t step = std::exchange(tile.step, lanes);
  for (int i = 0; i < count; ++i) {
    const int rows = i < longer ? length + 1 : length;
    tile.dst = sums;
    if (residual != nullptr) {
      for (int p = 0; p < rows; ++p) store(sums + p * lanes, load_n(residual + p * step, columns));
      tile.residual = sums;
      residual += rows * step;
    }
    tiles.of[0][rows](tile, 1);
    for (int p = 0; p < rows; ++p, dst += step) store_n(dst, load(sums + p * lanes), columns);
  }
}

inline void run(const ConvWinograd1968Args& args, int begin, int end, int pixel, int count, void* memory) {
  const PointwiseShape& s = args.shape;
  const ConvWinograd1968Layout layout(s, lanes);
  const Scratch scratch(args, pixel, static_cast<float*>(memory));
  const Activation& activation = args.epilogue.activation;
  const float* const residual = args.epilogue.residual.f32();
  // Tiles of nearly equal length, the longer ones first.
  const int steps = ceil_div(count, max_tile), length = count / steps, longer = count % steps;
  const bool rows = args.dst_row != 0;
  const size_t step = rows ? static_cast<size_t>(args.dst_row) : lanes;
  const size_t plane = args.dst_plane != 0 ? args.dst_plane : static_cast<size_t>(s.out_h) * s.out_w * lanes;
  for (int block = begin; block < end; ++block) {
    const size_t at = pixel * step + (rows ? static_cast<size_t>(block) * lanes : block * plane);
    const float* const panel = args.weights + static_cast<size_t>(block) * layout.panel;
    Tile tile{.a = scratch.samples,
              .a_block = scratch.block,
              .start = scratch.start,
              .scale = scratch.scale,
              .panel = panel,
              .layout = &layout,
              .half = has_half_block && s.in_channels - (layout.in_blocks - 1) * lanes <= lanes / 2,
              .next = block + 1 < end ? panel + layout.panel : nullptr,
              .dst = args.dst + at,
              .residual = residual != nullptr ? residual + at : nullptr,
              .step = step,
              .activation = &activation};
    const int channels = s.out_channels - block * lanes < lanes ? s.out_channels - block * lanes : lanes;
    if (rows && channels < lanes) {
      run_narrow(tile, steps, length, longer, channels);
      continue;
    }
    const auto& of = tiles.of[halves_512_bits() && channels <= lanes / 2];
    if (longer > 0) of[length + 1](tile, longer);
    of[length](tile, steps - longer);
    if (!rows) finish_rest(activation, args.dst + at, count, channels);
  }
  if (!rows || finishes_in_registers(activation.kind)) return;
  const int first = begin * lanes, past = end * lanes < s.out_channels ? end * lanes : s.out_channels;
  for (int p = pixel; p < pixel + count; ++p) {
    float* const row = args.dst + p * args.dst_row + first;
    activate_row(row, row, static_cast<size_t>(past - first), activation);
  }
}

}  // namespace conv_winograd_1968
}  // namespace softneuro::SN_ISA

namespace softneuro {

SN_KERNEL_TABLE(ConvWinograd1968Kernels, conv_winograd_1968) = {
    .block = SN_ISA::lanes,
    .scratch_bytes = SN_ISA::conv_winograd_1968::scratch_bytes,
    .prepare = SN_ISA::conv_winograd_1968::prepare,
    .run = SN_ISA::conv_winograd_1968::run,
};

}  // namespace softneuro
