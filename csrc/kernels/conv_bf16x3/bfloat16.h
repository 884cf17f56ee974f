// A float32 as the sum of two bfloat16: what eight and eight bits of its significand leave is below 2^-17 of it.
// Where float32's largest values would round to infinity, they are cut off instead; infinity and NaN are the first part
// alone.
#pragma once

#include <cstdint>

namespace softneuro {

struct Bfloat16Pair {
  uint16_t high, low;
};

[[gnu::always_inline]] inline uint32_t float_bits(float x) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  return bits;
}
[[gnu::always_inline]] inline float float_of(uint32_t bits) {
  float x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}

// Written without branches, so that compilers make vector code of a loop of these.
[[gnu::always_inline]] inline Bfloat16Pair split_bfloat16(float x) {
  constexpr uint32_t infinity = 0x7f800000, quiet = 0x00400000, first_half = 0xffff0000;
  const uint32_t bits = float_bits(x), size = bits & 0x7fffffff;
  const auto rounded = [](uint32_t value) __attribute__((always_inline)) {
    return (value + 0x7fff + ((value >> 16) & 1)) & 0xffff0000;
  };
  const bool overflows = rounded(size) >= infinity;
  uint32_t high = overflows ? bits & first_half : rounded(bits);
  high |= size > infinity ? quiet : 0;
  const float rest = x - float_of(high);
  const uint32_t low = size >= infinity ? 0 : rounded(float_bits(rest));
  return {static_cast<uint16_t>(high >> 16), static_cast<uint16_t>(low >> 16)};
}

}  // namespace softneuro
