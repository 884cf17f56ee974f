// The activations of kernels/activation.h over vectors.
#pragma once

#include "kernels/activation.h"
#include "simd/math.h"

namespace softneuro::SN_ISA {

template <ActivationKind kind>
SN_INLINE Vf activate(Vf x, Vf a, Vf b) {
  using K = ActivationKind;
  if constexpr (kind == K::none) {
    return x;
  } else if constexpr (kind == K::relu) {
    return at_least(x, zero());
  } else if constexpr (kind == K::clamp) {
    return clamp(x, a, b);
  } else if constexpr (kind == K::leaky_relu) {
    return select(lt(zero(), x), x, a * x);
  } else if constexpr (kind == K::hardswish) {
    return x * activate<K::hardsigmoid>(x, a, b);
  } else if constexpr (kind == K::hardsigmoid) {
    return clamp(x + set(3.0f), zero(), set(6.0f)) * set(1.0f / 6.0f);
  } else if constexpr (kind == K::sigmoid) {
    return sigmoid(x);
  } else if constexpr (kind == K::tanh) {
    return tanh(x);
  } else if constexpr (kind == K::silu) {
    return x / (set(1.0f) + exp(-x));
  } else if constexpr (kind == K::swish) {
    return x / (set(1.0f) + exp(-(a * x)));
  } else if constexpr (kind == K::gelu) {
    return x * set(0.5f) * (set(1.0f) + erf(x * set(0.70710678f)));
  } else if constexpr (kind == K::gelu_tanh) {
    const Vf inner = x * fma(x * x, set(0.79788456f * 0.044715f), set(0.79788456f));
    return x * set(0.5f) * (set(1.0f) + tanh(inner));
  } else if constexpr (kind == K::elu) {
    return select(lt(x, zero()), a * expm1(x), x);  // -0 stays
  } else if constexpr (kind == K::exp) {
    return exp(x);
  } else if constexpr (kind == K::log) {
    return log(x);
  } else if constexpr (kind == K::erf) {
    return erf(x);
  } else if constexpr (kind == K::softplus) {
    // log(1 + t), of which 1 + t has lost digits of t: the quotient makes up for them.
    const Vf t = exp(-abs(x)), sum = set(1.0f) + t, kept = sum - set(1.0f);
    return at_least(x, zero()) + select(lt(zero(), kept), log(sum) * (t / kept), t);
  } else {
    static_assert(kind == K::mish);
    // tanh(log(1 + t)) = (t^2 + 2t) / (t^2 + 2t + 2), which is 1 in float32 from x = 20 on.
    const Vf t = exp(at_most(x, set(20.0f)));
    const Vf n = t * (t + set(2.0f));
    return x * (n / (n + set(2.0f)));
  }
}

// Calls body with the kind as a template argument: body.template operator()<kind>().
template <class Body>
SN_INLINE void with_activation(ActivationKind kind, const Body& body) {
  switch (kind) {
#define SN_CASE(name, formula)                        \
  case ActivationKind::name:                          \
    body.template operator()<ActivationKind::name>(); \
    break;
    SN_ACTIVATIONS(SN_CASE)
#undef SN_CASE
  }
}

}  // namespace softneuro::SN_ISA
