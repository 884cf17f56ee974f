// One element of each type. Those that C++ has no arithmetic for say themselves what real they are: value() and from().
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace softneuro {

// Two-byte reals are their bits: exact to float32, rounded to nearest even from it. NaN stays NaN, payloads as far as
// they fit; what exceeds float16 becomes infinite. Vectors of them are simd's.
struct Float16 {
  uint16_t bits;

  static constexpr int digits = 11;  // integers up to 2^digits are exact
  constexpr float value() const {
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000U) << 16, rest = bits & 0x7fffU;
    if (rest >= 0x7c00U) {  // infinite or NaN, which becomes quiet
      const uint32_t payload = (rest & 0x3ffU) << 13;
      return std::bit_cast<float>(sign | 0x7f800000U | payload | (payload != 0 ? 0x400000U : 0U));
    }
    if (rest >= 0x400U) return std::bit_cast<float>(sign | ((rest << 13) + 0x38000000U));
    const float small = static_cast<float>(rest) * 0x1p-24F;  // zero or denormal, exactly
    return sign != 0 ? -small : small;
  }
  static constexpr Float16 from(float x) {
    const auto all = std::bit_cast<uint32_t>(x);
    const uint32_t sign = all >> 16 & 0x8000U, rest = all & 0x7fffffffU;
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
  friend bool operator==(Float16, Float16) = default;
};

struct BFloat16 {
  uint16_t bits;

  static constexpr int digits = 8;
  constexpr float value() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
  static constexpr BFloat16 from(float x) {
    const auto all = std::bit_cast<uint32_t>(x);
    if ((all & 0x7fffffffU) > 0x7f800000U) return {static_cast<uint16_t>(all >> 16 | 0x40U)};  // quiet
    return {static_cast<uint16_t>((all + 0x7fffU + (all >> 16 & 1U)) >> 16)};
  }
  friend bool operator==(BFloat16, BFloat16) = default;
};

struct Bool {
  uint8_t truth;  // 0 or 1

  constexpr float value() const { return truth != 0 ? 1.0F : 0.0F; }
  static constexpr Bool from(float x) { return {static_cast<uint8_t>(x != 0 ? 1 : 0)}; }
  friend bool operator==(Bool, Bool) = default;
};

// Eight bits of a quantized value, signed or not as the blob's parameters say, which also say what real it is.
struct QInt8 {
  uint8_t bits;

  constexpr float value() const { return bits; }
  static QInt8 from(float x);
  friend bool operator==(QInt8, QInt8) = default;
};

// An element as a float; integers beyond 2^24 lose digits.
template <typename T>
constexpr float element_value(T x) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<float>(x);
  } else {
    return x.value();
  }
}

// A real as an element: rounded to nearest even, and kept within an integer's range.
template <typename T>
T element_from(float x) {
  if constexpr (std::is_integral_v<T>) {
    constexpr auto least = static_cast<double>(std::numeric_limits<T>::min());
    constexpr auto most = static_cast<double>(std::numeric_limits<T>::max());
    const double rounded = std::nearbyint(static_cast<double>(x));
    if (!(rounded > least)) return std::numeric_limits<T>::min();  // NaN, too
    return rounded >= most ? std::numeric_limits<T>::max() : static_cast<T>(rounded);
  } else if constexpr (std::is_arithmetic_v<T>) {
    return x;
  } else {
    return T::from(x);
  }
}

inline QInt8 QInt8::from(float x) { return {element_from<uint8_t>(x)}; }

}  // namespace softneuro
