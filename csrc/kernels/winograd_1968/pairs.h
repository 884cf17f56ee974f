// Sums of products with additions in the place of multiplications (Winograd, "A new algorithm for inner product",
// 1968): of two products' operands
//
//   x1 w1 + x2 w2 = (x1 + w2) (x2 + w1) - x1 x2 - w1 w2
//
// where the last two terms are one per vector of x and one per vector of w, of all pairs that are multiplied so. CPUs
// that add beside their multiply-adds (adds_beside_fmas) are limited by the latter: with 16 lanes five of eight pairs
// are multiplied so, and 16 products take eleven multiply-adds and ten additions.
//
// Sums lose the digits by which one operand is smaller than the other, so each vector is scaled by a power of two to
// magnitudes up to 2.
#pragma once

#include <cstddef>

namespace softneuro {

// Whether a pair of a block of `lanes` products is multiplied so, in an order in which multiply-adds and additions
// alternate.
[[gnu::always_inline]] constexpr bool winograd_1968_adds(int lanes, int pair) {
  constexpr bool of_eight[] = {true, false, true, false, true, true, false, true};
  return lanes == 16 ? of_eight[pair] : pair % 2 == 0;
}

// The sums of a block's vectors of w start with these terms; the scales are theirs.
struct Winograd1968Terms {
  float *start, *scale;  // [lane]
};
// Scales weights[channel][lane], whose channels come in whole blocks, lane by lane. Lanes of zeros have a scale of 0.
void winograd_1968_normalize(int lanes, int channels, float* weights, const Winograd1968Terms& terms);

}  // namespace softneuro
