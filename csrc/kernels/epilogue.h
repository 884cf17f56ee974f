// How a kernel ends, described at run time: what becomes of its sums until they are stored.
//
//   dst = activation(scale * sum + bias + residual), as elements of the type in `dst`
//
// kernels/store does it.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/dtype.h"
#include "kernels/activation.h"

namespace softneuro {

// What elements in memory mean: float32, float16 and bfloat16 are numbers, uint8 and int8 mean (element - zero) *
// scale.
struct ElementFormat {
  DType type = DType::float32;
  float scale = 1;
  int32_t zero = 0;
  int32_t least = -128, most = 255;  // stored ones are in [least, most] as far as the type goes
};

[[gnu::always_inline]] constexpr size_t element_bytes(DType type) {
  switch (type) {
#define SN_DTYPE(name, T, bits, kind) \
  case DType::name:                   \
    return (bits) / 8;
#include "base/dtypes.inc"
#undef SN_DTYPE
  }
  return 0;
}
[[gnu::always_inline]] inline void* element_at(void* first, DType type, size_t index) {
  return static_cast<char*>(first) + index * element_bytes(type);
}
[[gnu::always_inline]] inline const void* element_at(const void* first, DType type, size_t index) {
  return static_cast<const char*>(first) + index * element_bytes(type);
}

struct Residual {
  const void* data = nullptr;  // null: none
  ElementFormat elements = {};

  [[gnu::always_inline]] constexpr Residual() = default;
  [[gnu::always_inline]] constexpr Residual(const float* values) : data(values) {}
  [[gnu::always_inline]] constexpr Residual(const void* data, const ElementFormat& elements)
      : data(data), elements(elements) {}
  [[gnu::always_inline]] bool is_float32() const { return data == nullptr || elements.type == DType::float32; }
  [[gnu::always_inline]] const float* f32() const {
    assert(is_float32());
    return static_cast<const float*>(data);
  }
};

// A whole number of steps that a scaled sum is brought to before the residual is added: clamped, and then rounded.
struct RoundedSum {
  float least = 0, most = 0;
  float step = 0;  // 0: it is not rounded
};

struct Epilogue {
  const float* bias = nullptr;  // per output channel, padded with zeros as each kernel says; null: none
  Residual residual = {};       // lies like dst, may be dst itself if it has its type
  Activation activation;
  // Kernels that take no more than the above say so by taking a float* dst.
  const float* scale = nullptr;  // lies like bias; null: 1
  ElementFormat dst = {};
  RoundedSum rounded = {};  // only where dst and residual are quantized, by kernels that say so

  // The same for channels from `channel` on and elements from `index` on.
  [[gnu::always_inline]] Epilogue from(int channel, size_t index) const {
    Epilogue e = *this;
    if (bias != nullptr) e.bias += channel;
    if (scale != nullptr) e.scale += channel;
    if (residual.data != nullptr) e.residual.data = element_at(residual.data, residual.elements.type, index);
    return e;
  }
  // Nothing but floats: all of it is done in registers by kernels of float sums.
  [[gnu::always_inline]] bool is_float32() const {
    return scale == nullptr && residual.is_float32() && dst.type == DType::float32;
  }
};

// Activations that are a clamp are applied in registers, the others by a second pass over what was just written.
struct ClampBounds {
  float lo = -std::numeric_limits<float>::infinity();
  float hi = std::numeric_limits<float>::infinity();
};
[[gnu::always_inline]] constexpr bool is_clamp(ActivationKind kind) {
  return kind == ActivationKind::none || kind == ActivationKind::relu || kind == ActivationKind::clamp;
}
[[gnu::always_inline]] inline ClampBounds clamp_bounds(const Activation& activation) {
  if (activation.kind == ActivationKind::relu) return {.lo = 0.0f};
  if (activation.kind == ActivationKind::clamp) return {activation.a, activation.b};
  return {};
}

}  // namespace softneuro
