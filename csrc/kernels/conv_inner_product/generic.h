// conv_inner_product over Vf. Contract: conv_inner_product.h.
#pragma once

#include "kernels/conv_inner_product/layout.h"
#include "kernels/conv_inner_product/products.h"
#include "kernels/finish_sums.h"
#include "simd/integers.h"

namespace softneuro::SN_ISA {
namespace conv_inner_product {

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

// The power of two at or below each of some magnitudes, as far as its inverse is a float: 1 for what is not finite.
SN_INLINE Vf power_of_two(Vf magnitude) {
  constexpr int one = 1 << 23;  // of the exponent
  Vi e = bits(magnitude) & (255 * one);
  e = e == 255 * one ? Vi{} + 127 * one : e;
  e = e < one ? Vi{} + one : e;
  return from_bits(e > 253 * one ? Vi{} + 253 * one : e);
}
SN_INLINE Vf inverse(Vf power_of_two) { return from_bits((254 << 23) - bits(power_of_two)); }

template <int... i>
SN_INLINE Vf swap_neighbours(Vf x, LaneList<i...>) {
  return {__builtin_shufflevector(x.v, x.v, (i ^ 1)...)};
}

// Where some pixels of the first input block lie.
struct Pixels {
  const float* from[lanes];
  int count;
  size_t plane;  // floats from input block to input block
  int blocks;

  // All lanes, at equal distances.
  bool even() const {
    for (int p = 2; p < count; ++p) {
      if (from[p] - from[p - 1] != from[1] - from[0]) return false;
    }
    return count == lanes;
  }
};

// Calls body(pixel, block, vector) block by block, as neighbours share what the hardware fetches.
template <class Body>
SN_INLINE void each_even(const Pixels& pixels, const Body& body) {
  const float* from = pixels.from[0];
  const ptrdiff_t distance = pixels.from[1] - from;
  for (int cb = 0; cb < pixels.blocks; ++cb, from += pixels.plane) {
    const float* const next = cb + 1 < pixels.blocks ? from + pixels.plane : from;
    unroll<lanes>([&](auto p) {
      prefetch(next + p * distance);
      body(p, cb, load(from + p * distance));
    });
  }
}
template <class Body>
SN_INLINE void each_of_some(const Pixels& pixels, const Body& body) {
  for (int p = 0; p < pixels.count; ++p) {
    for (int cb = 0; cb < pixels.blocks; ++cb) body(p, cb, load(pixels.from[p] + cb * pixels.plane));
  }
}

// The largest magnitude of each pixel.
[[gnu::flatten]] inline Vf magnitudes(const Pixels& pixels, bool even) {
  Vf most[lanes];
  unroll<lanes>([&](auto p) { most[p] = zero(); });
  const auto add = [&](int p, int, Vf x) __attribute__((always_inline)) { most[p] = at_least(abs(x), most[p]); };
  if (even) {
    each_even(pixels, add);
  } else {
    each_of_some(pixels, add);
  }
  transpose(most);
  for (int l = 1; l < lanes; ++l) most[0] = at_least(most[l], most[0]);
  return most[0];
}

// Samples times their pixel's factor; returns what the pixels' sums start with.
[[gnu::flatten]] inline Vf scale_samples(const Pixels& pixels, bool even, const float* factor, float* to,
                                         size_t block) {
  Vf products[lanes];
  unroll<lanes>([&](auto p) { products[p] = zero(); });
  const auto add = [&](int p, int cb, Vf x) __attribute__((always_inline)) {
    x = x * set(factor[p]);
    store(to + cb * block + p * lanes, x);
    products[p] = fma(x, swap_neighbours(x, AllLanes()), products[p]);
  };
  if (even) {
    each_even(pixels, add);
  } else {
    each_of_some(pixels, add);
  }
  transpose(products);
  Vf start = zero();
  unroll<pairs>([&](auto i) {
    if constexpr (adds_first(i)) start = start - products[2 * i];
  });
  return start;
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
    const bool even = pixels.even();
    const Vf largest = magnitudes(pixels, even), scale = power_of_two(largest);
    // Pixels of zeros have no more than their bias, whatever rounding leaves of the sums.
    store(scratch.scale + first, select(eq(largest, zero()), zero(), scale));
    float factor[lanes];
    store(factor, inverse(scale));
    store(scratch.start + first, scale_samples(pixels, even, factor, scratch.samples + first * lanes, scratch.block));
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

inline void pack(const ConvInnerProductShape& s, const float* weights, const float* bias, float* packed) {
  const ConvInnerProductLayout layout(s, lanes);
  for (int block = 0; block < layout.out_blocks; ++block) {
    float* const panel = packed + static_cast<size_t>(block) * layout.panel;
    float* const of_block = panel + layout.products;
    for (int l = 0; l < lanes; ++l) {
      const int n = block * lanes + l;
      const auto weight = [&](int c) {
        return n < s.out_channels && c < s.in_channels ? weights[static_cast<size_t>(n) * s.in_channels + c] : 0.f;
      };
      float most = 0;
      for (int c = 0; c < s.in_channels; ++c) {
        const float w = __builtin_fabsf(weight(c));
        most = w > most ? w : most;
      }
      float scale[lanes];
      store(scale, power_of_two(set(most)));
      double start = 0;
      for (int cb = 0; cb < layout.in_blocks; ++cb) {
        float* const to = panel + static_cast<size_t>(cb) * lanes * lanes + l;
        for (int c = 0; c < lanes; ++c) to[c * lanes] = weight(cb * lanes + c) / scale[0];
        for (int i = 0; i < pairs; ++i) {
          if (adds_first(i)) start -= static_cast<double>(to[2 * i * lanes]) * to[(2 * i + 1) * lanes];
        }
      }
      of_block[l] = static_cast<float>(start);
      of_block[lanes + l] = most > 0 ? scale[0] : 0;
      of_block[2 * lanes + l] = bias != nullptr && n < s.out_channels ? bias[n] : 0;
    }
  }
}

}  // namespace conv_inner_product
}  // namespace softneuro::SN_ISA

namespace softneuro {

extern const ConvInnerProductKernels SN_ISA_NAME(conv_inner_product);
const ConvInnerProductKernels SN_ISA_NAME(conv_inner_product) = {
    .block = SN_ISA::lanes,
    .pack = SN_ISA::conv_inner_product::pack,
    .scratch_bytes = SN_ISA::conv_inner_product::scratch_bytes,
    .prepare = SN_ISA::conv_inner_product::prepare,
    .run = SN_ISA::conv_inner_product::run,
};

}  // namespace softneuro
