// The activation kernel over Vf.
#pragma once

#include "kernels/activate/activate.h"
#include "kernels/store/activations.h"
#include "kernels/store/rest.h"

namespace softneuro::SN_ISA {

inline void activate_all(float* dst, const float* src, const float* residual, int64_t count,
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

}  // namespace softneuro::SN_ISA

namespace softneuro {

SN_KERNEL_TABLE(ActivateKernel, activate) = SN_ISA::activate_all;

}  // namespace softneuro
