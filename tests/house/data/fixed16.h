// Sixteen bits of fixed point: the smallest complete element type. Compiled only by the test that shows how one is
// added.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace softneuro {

struct Fixed16 {
  int16_t bits;

  static constexpr int digits = 7;
  float value() const { return static_cast<float>(bits) / 256; }
  static Fixed16 from(float x) {
    return {static_cast<int16_t>(std::clamp(std::nearbyint(x * 256), -32768.0F, 32767.0F))};
  }
};

}  // namespace softneuro
