// The activation kernel over Vf. Contract: activate.h.
#pragma once

#include "kernels/activate/activate.h"
#include "kernels/store/activations.h"
#include "kernels/store/rest.h"
#include "kernels/store/visit.h"

namespace softneuro::SN_ISA {

inline void activate_floats(float* dst, const float* src, const float* residual, int64_t count,
                            const Activation& activation) {
  if (residual == nullptr) return activate_row(dst, src, static_cast<size_t>(count), activation);
  const Vf a = set(activation.a), b = set(activation.b);
  with_activation(activation.kind, [&]<ActivationKind kind>() {
    int64_t i = 0;
    for (; i + lanes <= count; i += lanes) {
      store(dst + i, activate<kind>(load(src + i) + load(residual + i), a, b));
    }
    if (i < count) {
      const int rest = static_cast<int>(count - i);
      store_n(dst + i, activate<kind>(load_n(src + i, rest) + load_n(residual + i, rest), a, b), rest);
    }
  });
}

inline void activate_any(void* dst, const void* src, const void* residual, int64_t count, const Activation& activation,
                         const ActivateFormats* formats) {
  if (formats == nullptr) {
    return activate_floats(static_cast<float*>(dst), static_cast<const float*>(src),
                           static_cast<const float*>(residual), count, activation);
  }
  alignas(64) float values[buffered], added[buffered];
  for (int64_t i = 0; i < count; i += buffered) {
    const int64_t n = count - i < buffered ? count - i : buffered;
    read_values(formats->src, src, i, n, values);
    if (residual != nullptr) read_values(formats->residual, residual, i, n, added);
    activate_floats(values, values, residual != nullptr ? added : nullptr, n, activation);
    write_values(formats->dst, values, dst, i, n);
  }
}

}  // namespace softneuro::SN_ISA

namespace softneuro {

SN_KERNEL_TABLE(ActivateKernel, activate) = SN_ISA::activate_any;

}  // namespace softneuro
