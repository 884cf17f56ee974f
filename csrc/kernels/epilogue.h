// What a convolution or matrix product does to its sums before they are stored: activation(sum + bias + residual).
#pragma once

#include <limits>

#include "kernels/activation.h"

namespace softneuro {

struct Epilogue {
  const float* bias = nullptr;      // per output channel, padded with zeros as each kernel says; null: none
  const float* residual = nullptr;  // same layout and strides as dst, may be dst itself; null: none
  Activation activation;
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
