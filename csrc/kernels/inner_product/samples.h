// Pixels made ready for products: scaled, and what their sums start with. See pairs.h.
#pragma once

#include "kernels/inner_product/products.h"
#include "simd/integers.h"

namespace softneuro::SN_ISA {
namespace inner_product {

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
  int last = lanes;  // channels of the last block, if what lies behind them is another pixel's

  // At equal distances.
  bool even() const {
    for (int p = 2; p < count; ++p) {
      if (from[p] - from[p - 1] != from[1] - from[0]) return false;
    }
    return true;
  }
};

// Calls body(pixel, block, vector). Of `even` pixels, as many as they are, block by block, as neighbours share what the
// hardware fetches; 0: of any.
template <int even, class Body>
SN_INLINE void each_vector(const Pixels& pixels, const Body& body) {
  const int whole = pixels.last == lanes ? pixels.blocks : pixels.blocks - 1;
  if constexpr (even > 0) {
    const float* from = pixels.from[0];
    const ptrdiff_t distance = even > 1 ? pixels.from[1] - from : 0;
    for (int cb = 0; cb < whole; ++cb, from += pixels.plane) {
      // From pixel to pixel: products of the distance would take all general registers.
      const float *at = from, *next = cb + 1 < pixels.blocks ? from + pixels.plane : from;
      unroll<even>([&](auto p) {
        prefetch(next);
        body(p, cb, load(at));
        at += distance, next += distance;
      });
    }
    if (whole == pixels.blocks) return;
    unroll<even>([&](auto p) { body(p, whole, load_n(from + p * distance, pixels.last)); });
  } else {
    for (int p = 0; p < pixels.count; ++p) {
      for (int cb = 0; cb < pixels.blocks; ++cb) {
        const float* const at = pixels.from[p] + cb * pixels.plane;
        body(p, cb, cb < whole ? load(at) : load_n(at, pixels.last));
      }
    }
  }
}

// The largest magnitude of each pixel.
template <int even>
[[gnu::flatten]] Vf magnitudes(const Pixels& pixels) {
  Vf most[lanes];
  unroll<lanes>([&](auto p) { most[p] = zero(); });
  each_vector<even>(pixels,
                    [&](int p, int, Vf x) __attribute__((always_inline)) { most[p] = at_least(abs(x), most[p]); });
  transpose(most);
  unroll<lanes - 1>([&](auto l) { most[0] = at_least(most[l + 1], most[0]); });
  return most[0];
}

// Samples times their pixel's factor; returns what the pixels' sums start with.
template <int even>
[[gnu::flatten]] Vf scale_samples(const Pixels& pixels, const float* factor, float* to, size_t block) {
  Vf products[lanes];
  unroll<lanes>([&](auto p) { products[p] = zero(); });
  each_vector<even>(pixels, [&](int p, int cb, Vf x) __attribute__((always_inline)) {
    x = x * set(factor[p]);
    store(to + cb * block + p * lanes, x);
    products[p] = fma(x, swap_neighbours(x, AllLanes()), products[p]);
  });
  transpose(products);
  Vf start = zero();
  unroll<pairs>([&](auto i) {
    if constexpr (adds_first(i)) start = start - products[2 * i];
  });
  return start;
}

struct Preparation {
  Vf (*magnitudes)(const Pixels&);
  Vf (*scale_samples)(const Pixels&, const float* factor, float* to, size_t block);
};
template <int most>
constexpr auto all_preparations() {
  struct {
    Preparation of[most + 1];  // by the number of even pixels
  } table{};
  unroll<most + 1>([&](auto even) { table.of[even] = {magnitudes<even>, scale_samples<even>}; });
  return table;
}
constexpr auto preparations = all_preparations<lanes>();

// Scaled samples to `to`, whose blocks are `block` floats apart; what the pixels' sums start with and their scales, a
// vector each. `to` may be where the samples are.
inline void prepare(const Pixels& pixels, float* to, size_t block, float* start, float* scales) {
  const Preparation& preparation = preparations.of[pixels.even() ? pixels.count : 0];
  const Vf largest = preparation.magnitudes(pixels), scale = power_of_two(largest);
  // Pixels of zeros have sums of zero, whatever rounding leaves of them.
  store(scales, select(eq(largest, zero()), zero(), scale));
  float factor[lanes];
  store(factor, inverse(scale));
  store(start, preparation.scale_samples(pixels, factor, to, block));
}

}  // namespace inner_product
}  // namespace softneuro::SN_ISA
