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

  Scratch(const ConvInnerProductShape& s, int pixels, float* memory) {
    block = static_cast<size_t>(ceil_div(pixels * lanes, 16) | 1) * 16;
    samples = memory;
    start = samples + static_cast<size_t>(ceil_div(s.in_channels, lanes)) * block;
    scale = start + round_up(pixels, 16);
    floats = static_cast<size_t>(scale - memory) + round_up(pixels, 16);
  }
};

inline size_t scratch_bytes(const ConvInnerProductShape& shape, int row_block) {
  return Scratch(shape, row_block, nullptr).floats * sizeof(float);
}

inline void prepare(const ConvInnerProductArgs& args, int pixel, int count, void* memory) {
  const ConvInnerProductShape& s = args.shape;
  const Scratch scratch(s, args.row_block, static_cast<float*>(memory));
  Pixels pixels{};
  pixels.plane = static_cast<size_t>(s.h) * s.w * lanes;
  pixels.blocks = ceil_div(s.in_channels, lanes);
  int y = pixel / s.out_w, x = pixel % s.out_w;
  for (int first = 0; first < count; first += lanes) {
    pixels.count = count - first < lanes ? count - first : lanes;
    for (int p = 0; p < pixels.count; ++p) {
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
  unroll<tile>([&](auto p) { sum[p] = fma(sum[p], scale * set(t.scale[p]), bias); });
  finish_tile<1, tile>(sum, true, t.activation, t.dst, t.residual, 0, lanes);
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

inline void run(const ConvInnerProductArgs& args, int begin, int end, int pixel, int count, void* memory) {
  const ConvInnerProductShape& s = args.shape;
  const ConvInnerProductLayout layout(s, lanes);
  const Scratch scratch(s, args.row_block, static_cast<float*>(memory));
  const int steps = ceil_div(count, max_tile);
  for (int block = begin; block < end; ++block) {
    Tile tile{};
    tile.a_block = scratch.block;
    tile.panel = args.weights + static_cast<size_t>(block) * layout.panel;
    tile.layout = &layout;
    tile.next = tile.panel + layout.panel;
    tile.activation = &args.epilogue.activation;
    const size_t at = (static_cast<size_t>(block) * s.out_h * s.out_w + pixel) * lanes;
    for (int step = 0, first = 0; step < steps; ++step) {
      const int pixels = ceil_div(count - first, steps - step);
      tile.a = scratch.samples + first * lanes;
      tile.start = scratch.start + first;
      tile.scale = scratch.scale + first;
      tile.dst = args.dst + at + first * lanes;
      tile.residual = args.epilogue.residual != nullptr ? args.epilogue.residual + at + first * lanes : nullptr;
      const bool fetch = step == 0 && block + 1 < end;
      tiles.compute[fetch][pixels - 1](tile);
      first += pixels;
    }
    const int channels = s.out_channels - block * lanes < lanes ? s.out_channels - block * lanes : lanes;
    finish_rest(args.epilogue.activation, args.dst + at, count, channels);
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
