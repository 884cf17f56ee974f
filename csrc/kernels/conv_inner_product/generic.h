// conv_inner_product over Vf. Contract: conv_inner_product.h.
#pragma once

#include "kernels/conv_inner_product/layout.h"
#include "kernels/finish_sums.h"
#include "kernels/inner_product/products.h"
#include "kernels/inner_product/samples.h"

namespace softneuro::SN_ISA {
namespace conv_inner_product {

using namespace inner_product;

constexpr int max_tile = registers >= 32 ? 16 : 8;  // pixels

// Prepared pixels: [input block][pixel][lane], then of each what its sums start with and its scale.
struct Scratch {
  float *samples, *start, *scale;
  size_t block;  // floats from input block to input block: an odd number of lines, so that they differ in cache sets
  size_t floats;

  Scratch(const PointwiseShape& s, int pixels, float* memory) {
    block = static_cast<size_t>(ceil_div(pixels * lanes, 16) | 1) * 16;
    samples = memory;
    start = samples + static_cast<size_t>(ceil_div(s.in_channels, lanes)) * block;
    scale = start + round_up(pixels, 16);
    floats = static_cast<size_t>(scale - memory) + round_up(pixels, 16);
  }
};

inline size_t scratch_bytes(const PointwiseShape& shape, int row_block) {
  return Scratch(shape, row_block, nullptr).floats * sizeof(float);
}

inline void prepare(const ConvInnerProductArgs& args, int pixel, int count, void* memory) {
  const PointwiseShape& s = args.shape;
  const Scratch scratch(s, args.row_block, static_cast<float*>(memory));
  Pixels pixels{};
  const bool rows = args.src_row != 0;
  pixels.plane = rows ? lanes : static_cast<size_t>(s.h) * s.w * lanes;
  pixels.blocks = ceil_div(s.in_channels, lanes);
  if (rows) pixels.last = s.in_channels - (pixels.blocks - 1) * lanes;
  int y = rows ? 0 : pixel / s.out_w, x = rows ? 0 : pixel % s.out_w;
  for (int first = 0; first < count; first += lanes) {
    pixels.count = count - first < lanes ? count - first : lanes;
    for (int p = 0; p < pixels.count; ++p) {
      if (rows) {
        pixels.from[p] = args.src + (pixel + first + p) * args.src_row;
        continue;
      }
      pixels.from[p] = args.src + (static_cast<size_t>(y) * s.stride_h * s.w + x * s.stride_w) * lanes;
      if (++x == s.out_w) x = 0, ++y;
    }
    inner_product::prepare(pixels, scratch.samples + first * lanes, scratch.block, scratch.start + first,
                           scratch.scale + first);
  }
}

struct Tile {
  const float* a;  // prepared pixels
  size_t a_block;
  const float *start, *scale;  // of the pixels
  const float* panel;
  const ConvInnerProductLayout* layout;
  const float* next;  // the next panel's weights
  float* dst;
  const float* residual;  // null: none
  size_t step;            // floats from pixel to pixel of both
  const Activation* activation;
};

// fetch: the next panel's weights, into L2.
template <int tile, bool fetch>
[[gnu::flatten]] void compute_tile(const Tile& t) {
  const float *a = t.a, *w = t.panel, *next = t.next;
  const float* const of_block = t.panel + t.layout->products;
  Vf sum[tile];
  const Vf start = load(of_block);
  unroll<tile>([&](auto p) { sum[p] = start + set(t.start[p]); });
  for (int cb = 0; cb < t.layout->in_blocks; ++cb) {
    for (int p = 0; p < tile; ++p) prefetch(a + t.a_block + p * lanes);
    if constexpr (fetch) {
      for (int i = 0; i < lanes * lanes; i += 16) prefetch_l2(next + i);
      next += lanes * lanes;
    }
    multiply_block<tile>(sum, a, w);
    a += t.a_block;
    w += lanes * lanes;
  }
  const Vf scale = load(of_block + lanes), bias = load(of_block + 2 * lanes);
  // One after the other: the product of both may be beyond float32 where the result is not.
  unroll<tile>([&](auto p) { sum[p] = fma(sum[p] * scale, set(t.scale[p]), bias); });
  finish_tile<1, tile>(sum, true, t.activation, t.dst, t.residual, 0, t.step);
}

using ComputeTile = void (*)(const Tile&);
struct Tiles {
  ComputeTile compute[2][max_tile];  // [fetch][pixels - 1]
};
template <int largest>
constexpr Tiles all_tiles() {
  return [&]<int... i>(Indices<i...>) -> Tiles {
    return {{{compute_tile<i + 1, false>...}, {compute_tile<i + 1, true>...}}};
  }(Indices<__integer_pack(largest)...>{});
}
constexpr Tiles tiles = all_tiles<max_tile>();

// Of a matrix's last columns, fewer than a vector.
inline void run_narrow(Tile tile, int pixels, int columns, bool fetch) {
  alignas(64) float sums[max_tile * lanes];
  const Tile out = tile;
  tile.dst = sums;
  tile.step = lanes;
  for (int p = 0; p < pixels && out.residual != nullptr; ++p) {
    store(sums + p * lanes, load_n(out.residual + p * out.step, columns));
  }
  if (out.residual != nullptr) tile.residual = sums;
  tiles.compute[fetch][pixels - 1](tile);
  for (int p = 0; p < pixels; ++p) store_n(out.dst + p * out.step, load(sums + p * lanes), columns);
}

inline void run(const ConvInnerProductArgs& args, int begin, int end, int pixel, int count, void* memory) {
  const PointwiseShape& s = args.shape;
  const ConvInnerProductLayout layout(s, lanes);
  const Scratch scratch(s, args.row_block, static_cast<float*>(memory));
  const Activation& activation = args.epilogue.activation;
  const int steps = ceil_div(count, max_tile);
  const bool rows = args.dst_row != 0;
  for (int block = begin; block < end; ++block) {
    Tile tile{};
    tile.a_block = scratch.block;
    tile.panel = args.weights + static_cast<size_t>(block) * layout.panel;
    tile.layout = &layout;
    tile.next = tile.panel + layout.panel;
    tile.step = rows ? static_cast<size_t>(args.dst_row) : lanes;
    tile.activation = &activation;
    const int channels = s.out_channels - block * lanes < lanes ? s.out_channels - block * lanes : lanes;
    const size_t at = rows ? static_cast<size_t>(pixel) * tile.step + block * lanes
                           : (static_cast<size_t>(block) * s.out_h * s.out_w + pixel) * lanes;
    for (int step = 0, first = 0; step < steps; ++step) {
      const int pixels = ceil_div(count - first, steps - step);
      tile.a = scratch.samples + first * lanes;
      tile.start = scratch.start + first;
      tile.scale = scratch.scale + first;
      tile.dst = args.dst + at + first * tile.step;
      tile.residual = args.epilogue.residual != nullptr ? args.epilogue.residual + at + first * tile.step : nullptr;
      const bool fetch = step == 0 && block + 1 < end;
      if (rows && channels < lanes) {
        run_narrow(tile, pixels, channels, fetch);
      } else {
        tiles.compute[fetch][pixels - 1](tile);
      }
      first += pixels;
    }
    if (!rows) finish_rest(activation, args.dst + at, count, channels);
  }
  if (!rows || finishes_in_registers(activation.kind)) return;
  const int first = begin * lanes, past = end * lanes < s.out_channels ? end * lanes : s.out_channels;
  for (int p = pixel; p < pixel + count; ++p) {
    float* const row = args.dst + p * args.dst_row + first;
    activate_row(row, row, static_cast<size_t>(past - first), activation);
  }
}

}  // namespace conv_inner_product
}  // namespace softneuro::SN_ISA

namespace softneuro {

extern const ConvInnerProductKernels SN_ISA_NAME(conv_inner_product);
const ConvInnerProductKernels SN_ISA_NAME(conv_inner_product) = {
    .block = SN_ISA::lanes,
    .scratch_bytes = SN_ISA::conv_inner_product::scratch_bytes,
    .prepare = SN_ISA::conv_inner_product::prepare,
    .run = SN_ISA::conv_inner_product::run,
};

}  // namespace softneuro
