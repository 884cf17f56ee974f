// Two-byte reals one at a time: exact to float32, rounded to nearest even from it. NaN stays NaN, payloads as far as
// they fit; what exceeds float16 becomes infinite. Vectors of them are simd's.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "base/dtype.h"

namespace softneuro {

constexpr float to_float(BFloat16 x) { return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16); }

constexpr BFloat16 to_bfloat16(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return {static_cast<uint16_t>(bits >> 16 | 0x40U)};  // quiet
  return {static_cast<uint16_t>((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16)};
}

constexpr float to_float(Float16 x) {
  const uint32_t sign = static_cast<uint32_t>(x.bits & 0x8000U) << 16, rest = x.bits & 0x7fffU;
  if (rest >= 0x7c00U) {  // infinite or NaN, which becomes quiet
    const uint32_t payload = (rest & 0x3ffU) << 13;
    return std::bit_cast<float>(sign | 0x7f800000U | payload | (payload != 0 ? 0x400000U : 0U));
  }
  if (rest >= 0x400U) return std::bit_cast<float>(sign | ((rest << 13) + 0x38000000U));
  const float small = static_cast<float>(rest) * 0x1p-24F;  // zero or denormal, exactly
  return sign != 0 ? -small : small;
}

constexpr Float16 to_float16(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  const uint32_t sign = bits >> 16 & 0x8000U, rest = bits & 0x7fffffffU;
  if (rest > 0x7f800000U) return {static_cast<uint16_t>(sign | 0x7e00U | (rest >> 13 & 0x3ffU))};
  if (rest >= 0x477ff000U) return {static_cast<uint16_t>(sign | 0x7c00U)};  // 65520 and more
  if (rest >= 0x38800000U) {                                                // normal
    const uint32_t moved = rest - 0x38000000U;
    return {static_cast<uint16_t>(sign | (moved + 0xfffU + (moved >> 13 & 1U)) >> 13)};
  }
  if (rest < 0x33000000U) return {static_cast<uint16_t>(sign)};  // below half of the least denormal
  const uint32_t mantissa = (rest & 0x7fffffU) | 0x800000U, shift = 126U - (rest >> 23);
  const uint32_t half = 1U << (shift - 1), low = mantissa & ((1U << shift) - 1), kept = mantissa >> shift;
  const bool up = low > half || (low == half && (kept & 1U) != 0);
  return {static_cast<uint16_t>(sign | (kept + (up ? 1U : 0U)))};
}

// Any table entry's value as a float; integers beyond 2^24 lose digits.
template <typename T>
constexpr float element_value(T x) {
  return static_cast<float>(x);
}
constexpr float element_value(Float16 x) { return to_float(x); }
constexpr float element_value(BFloat16 x) { return to_float(x); }
constexpr float element_value(Bool x) { return x.value != 0 ? 1.0F : 0.0F; }
constexpr float element_value(QInt8 x) { return x.bits; }

// A real as a table entry: rounded to nearest even, and kept within an integer's range.
template <typename T>
T element_from(float x) {
  if constexpr (std::is_same_v<T, Float16>) {
    return to_float16(x);
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return to_bfloat16(x);
  } else if constexpr (std::is_same_v<T, Bool>) {
    return {static_cast<uint8_t>(x != 0 ? 1 : 0)};
  } else if constexpr (std::is_same_v<T, QInt8>) {
    return {element_from<uint8_t>(x)};
  } else if constexpr (std::is_integral_v<T>) {
    constexpr auto least = static_cast<double>(std::numeric_limits<T>::min());
    constexpr auto most = static_cast<double>(std::numeric_limits<T>::max());
    const double rounded = std::nearbyint(static_cast<double>(x));
    if (!(rounded > least)) return std::numeric_limits<T>::min();  // NaN, too
    return rounded >= most ? std::numeric_limits<T>::max() : static_cast<T>(rounded);
  } else {
    return x;
  }
}

}  // namespace softneuro
