// Buffers of elements of any type that kernels read and write, and what is right in them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/elements.h"
#include "kernels/epilogue.h"
#include "tests/check.h"

namespace softneuro::test {

inline ElementFormat random_elements() {
  constexpr DType types[] = {DType::float32, DType::float16, DType::bfloat16, DType::uint8, DType::int8};
  ElementFormat e{.type = types[pick(0, 4)]};
  if (element_bytes(e.type) > 1) return e;
  const int lowest = e.type == DType::int8 ? -128 : 0;
  e.least = lowest + (pick(0, 1) ? 0 : pick(1, 30)), e.most = lowest + (pick(0, 1) ? 255 : pick(200, 254));
  e.zero = pick(e.least, e.most);
  e.scale = 0.01F + 0.001F * static_cast<float>(pick(0, 50));
  return e;
}

// The value that x becomes in such elements.
inline double stored(const ElementFormat& e, double x) {
  switch (e.type) {
    case DType::float16:
      return Float16::from(static_cast<float>(x)).value();
    case DType::bfloat16:
      return BFloat16::from(static_cast<float>(x)).value();
    case DType::uint8:
    case DType::int8:
      return (std::clamp<double>(std::nearbyint(x / e.scale) + e.zero, e.least, e.most) - e.zero) * e.scale;
    default:
      return static_cast<float>(x);
  }
}

// n elements that end where memory does.
class Typed {
 public:
  Typed(const ElementFormat& elements, size_t n, unsigned char fill = 0)
      : elements_(elements), n_(n), bytes_(n * element_bytes(elements.type)), memory_((bytes_ + 3) / 4) {
    std::memset(data(), fill, bytes_);
  }
  Typed(const ElementFormat& elements, const std::vector<float>& values) : Typed(elements, values.size()) {
    for (size_t i = 0; i < values.size(); ++i) set(i, values[i]);
  }

  void* data() { return reinterpret_cast<char*>(memory_.data()) + memory_.size() * 4 - bytes_; }
  size_t size() const { return n_; }
  const ElementFormat& elements() const { return elements_; }
  Residual residual() { return {data(), elements_}; }

  double value(size_t i) {
    const void* at = element_at(data(), elements_.type, i);
    switch (elements_.type) {
      case DType::float16:
        return static_cast<const Float16*>(at)->value();
      case DType::bfloat16:
        return static_cast<const BFloat16*>(at)->value();
      case DType::uint8:
        return (*static_cast<const uint8_t*>(at) - elements_.zero) * static_cast<double>(elements_.scale);
      case DType::int8:
        return (*static_cast<const int8_t*>(at) - elements_.zero) * static_cast<double>(elements_.scale);
      default:
        return *static_cast<const float*>(at);
    }
  }
  bool is_filled(size_t i, unsigned char fill) {
    const auto* at = static_cast<const unsigned char*>(element_at(data(), elements_.type, i));
    for (size_t b = 0; b < element_bytes(elements_.type); ++b) {
      if (at[b] != fill) return false;
    }
    return true;
  }
  // Whether element i is what a number within `error` of `want` becomes.
  bool is_near(size_t i, double want, double error) {
    const double got = value(i), slack = 1e-6 * elements_.scale;
    return got >= stored(elements_, want - error) - slack && got <= stored(elements_, want + error) + slack;
  }

 private:
  void set(size_t i, float x) {
    void* at = element_at(data(), elements_.type, i);
    const double integer =
        std::clamp<double>(std::nearbyint(x / elements_.scale) + elements_.zero, elements_.least, elements_.most);
    switch (elements_.type) {
      case DType::float16:
        *static_cast<Float16*>(at) = Float16::from(x);
        break;
      case DType::bfloat16:
        *static_cast<BFloat16*>(at) = BFloat16::from(x);
        break;
      case DType::uint8:
        *static_cast<uint8_t*>(at) = static_cast<uint8_t>(integer);
        break;
      case DType::int8:
        *static_cast<int8_t*>(at) = static_cast<int8_t>(integer);
        break;
      default:
        *static_cast<float*>(at) = x;
    }
  }

  ElementFormat elements_;
  size_t n_, bytes_;
  Guarded memory_;
};

}  // namespace softneuro::test
