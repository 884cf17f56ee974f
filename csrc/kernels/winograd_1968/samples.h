// Pixels made ready for products: scaled, and what their sums start with. See pairs.h.
#pragma once

#include "kernels/winograd_1968/products.h"
#include "simd/integers.h"

namespace softneuro::SN_ISA {
namespace winograd_1968 {

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

template <int... i>
SN_INLINE Vf odd_lanes(Vf a, Vf b, LaneList<i...>) {
  return {__builtin_shufflevector(a.v, b.v, (2 * i + 1)...)};
}
// Joins neighbouring lanes of `count` vectors, and theirs, until what is left is one vector.
template <int count, class Join>
SN_INLINE Vf fold(Vf (&x)[lanes], const Join& join) {
  if constexpr (count > 1) {
    unroll<count / 2>([&](auto i) {
      const Vf a = x[2 * i], b = x[2 * i + 1];
      x[i] = join(even_lanes(a, b), odd_lanes(a, b, AllLanes()));
    });
    return fold<count / 2>(x, join);
  }
  return x[0];
}
// Keeps those lanes of both runs of `pairs` that are multiplied with additions; the others become zero.
template <int... i>
SN_INLINE Vf without_others(Vf x, LaneList<i...>) {
  return {__builtin_shufflevector(x.v, zero().v, (adds_first(i % pairs) ? i : lanes)...)};
}

// Where some pixels are.
struct Pixels {
  const float* from;   // the first one in the first input block
  ptrdiff_t distance;  // floats from pixel to pixel
  int count;           // up to `lanes`
  size_t plane;        // floats from input block to input block
  int blocks;
  int last = lanes;  // channels of the last block, if what lies behind them is another pixel's
};

// Calls body(pixel, block, vector), block by block, as neighbours share what the hardware fetches.
template <int count, class Body>
SN_INLINE void each_vector(const Pixels& pixels, const Body& body) {
  const int whole = pixels.last == lanes ? pixels.blocks : pixels.blocks - 1;
  const float* from = pixels.from;
  const ptrdiff_t distance = pixels.distance;
  for (int cb = 0; cb < whole; ++cb, from += pixels.plane) {
    // From pixel to pixel: products of the distance would take all general registers.
    const float *at = from, *next = cb + 1 < pixels.blocks ? from + pixels.plane : pixels.from + count * distance;
    unroll<count>([&](auto p) {
      prefetch(next);
      body(p, cb, load(at));
      at += distance, next += distance;
    });
  }
  if (whole == pixels.blocks) return;
  unroll<count>([&](auto p) { body(p, whole, load_n(from + p * distance, pixels.last)); });
}

// Scaled samples to `to`, whose blocks are `block` floats apart; what the pixels' sums start with and their scales, a
// vector each. `to` may be where the samples are.
template <int count>
[[gnu::flatten]] void prepare_pixels(const Pixels& pixels, float* to, size_t block, float* start, float* scales) {
  Vf most[lanes];
  unroll<lanes>([&](auto p) { most[p] = zero(); });
  each_vector<count>(pixels,
                     [&](int p, int, Vf x) __attribute__((always_inline)) { most[p] = at_least(abs(x), most[p]); });
  const Vf largest = fold<lanes>(most, [](Vf a, Vf b) { return at_least(a, b); }), scale = power_of_two(largest);
  // Pixels of zeros have sums of zero, whatever rounding leaves of them.
  store(scales, select(eq(largest, zero()), zero(), scale));
  float factor[lanes];
  store(factor, inverse(scale));
  Vf products[lanes];
  unroll<lanes>([&](auto p) { products[p] = zero(); });
  each_vector<count>(pixels, [&](int p, int cb, Vf x) __attribute__((always_inline)) {
    x = x * set(factor[p]);
    store(to + cb * block + p * lanes, x);
    products[p] = fma(x, swap_neighbours(x, AllLanes()), products[p]);
  });
  // Both lanes of a pair have its product.
  unroll<pairs>(
      [&](auto i) { products[i] = without_others(even_lanes(products[2 * i], products[2 * i + 1]), AllLanes()); });
  store(start, zero() - fold<pairs>(products, [](Vf a, Vf b) { return a + b; }));
}

using PreparePixels = void (*)(const Pixels&, float* to, size_t block, float* start, float* scales);
template <int most>
constexpr auto all_preparations() {
  struct {
    PreparePixels of[most + 1];  // by the number of pixels, from 1 on
  } table{};
  unroll<most>([&](auto p) { table.of[p + 1] = prepare_pixels<p + 1>; });
  return table;
}
constexpr auto preparations = all_preparations<lanes>();

SN_INLINE void prepare(const Pixels& pixels, float* to, size_t block, float* start, float* scales) {
  preparations.of[pixels.count](pixels, to, block, start, scales);
}

}  // namespace winograd_1968
}  // namespace softneuro::SN_ISA
