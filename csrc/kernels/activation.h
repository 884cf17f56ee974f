// Activation functions: one list for layers, fused epilogues and element-wise kernels.
#pragma once

#include <cstdint>
#include <string_view>

namespace softneuro {

// SN_ACTIVATION(name, formula): a and b are the two float params.
#define SN_ACTIVATIONS(X)                                                 \
  X(none, "x")                                                            \
  X(relu, "max(x, 0)")                                                    \
  X(clamp, "min(max(x, a), b)")                                           \
  X(leaky_relu, "x > 0 ? x : a * x")                                      \
  X(hardswish, "x * min(max(x + 3, 0), 6) / 6")                           \
  X(hardsigmoid, "min(max(x + 3, 0), 6) / 6")                             \
  X(sigmoid, "1 / (1 + exp(-x))")                                         \
  X(tanh, "tanh(x)")                                                      \
  X(silu, "x / (1 + exp(-x))")                                            \
  X(swish, "x / (1 + exp(-a * x))")                                       \
  X(gelu, "x * (1 + erf(x / sqrt(2))) / 2")                               \
  X(gelu_tanh, "x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))) / 2") \
  X(elu, "x > 0 ? x : a * (exp(x) - 1)")                                  \
  X(softplus, "log(1 + exp(x))")                                          \
  X(mish, "x * tanh(log(1 + exp(x)))")                                    \
  X(exp, "exp(x)")                                                        \
  X(log, "log(x)")                                                        \
  X(erf, "erf(x)")

enum class ActivationKind : uint8_t {
#define SN_ENUM(name, formula) name,
  SN_ACTIVATIONS(SN_ENUM)
#undef SN_ENUM
};

struct Activation {
  ActivationKind kind = ActivationKind::none;
  float a = 0, b = 0;
  friend bool operator==(const Activation&, const Activation&) = default;
};

constexpr std::string_view activation_name(ActivationKind kind) {
  constexpr std::string_view names[] = {
#define SN_NAME(name, formula) #name,
      SN_ACTIVATIONS(SN_NAME)
#undef SN_NAME
  };
  return names[static_cast<int>(kind)];
}

}  // namespace softneuro
