// A float32 as a sum of bfloat16, eight bits of its significand each: two leave below 2^-17 of it, three below 2^-25.
// Halves are rounded away from zero. Where float32's largest values would round to infinity, they are cut off instead;
// infinity and NaN are the first part alone.
#pragma once

#include <cstdint>

namespace softneuro {

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

// The next part of x, which becomes what is left of it.
[[gnu::always_inline]] inline uint16_t take_bfloat16(float& x) {
  constexpr uint32_t infinity = 0x7f800000, quiet = 0x00400000, first_half = 0xffff0000;
  const uint32_t bits = float_bits(x), size = bits & 0x7fffffff;
  const auto rounded = [](uint32_t value) __attribute__((always_inline)) { return (value + 0x8000) & 0xffff0000; };
  uint32_t part = rounded(size) >= infinity ? bits & first_half : rounded(bits);
  part |= size > infinity ? quiet : 0;
  x = size >= infinity ? 0 : x - float_of(part);
  return static_cast<uint16_t>(part >> 16);
}

}  // namespace softneuro
