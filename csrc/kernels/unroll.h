// unroll<n>(body): body(0) ... body(n - 1) with the index as a constant, so that arrays of vectors stay in registers
// (g++ 12 spills them under its unroll pragmas). Functions that use it on such arrays are [[gnu::flatten]], as a large
// body would otherwise be left as a call, with every vector in memory.
#pragma once

#include "simd/simd.h"

namespace softneuro::SN_ISA {

template <int value_>
struct Index {
  static constexpr int value = value_;
  SN_INLINE constexpr operator int() const { return value_; }
};
template <int... index>
struct Indices {};

template <int... index, class Body>
SN_INLINE constexpr void unroll(Indices<index...>, const Body& body) {
  (body(Index<index>{}), ...);
}
template <int n, class Body>
SN_INLINE constexpr void unroll(const Body& body) {
  unroll(Indices<__integer_pack(n)...>{}, body);
}

}  // namespace softneuro::SN_ISA
