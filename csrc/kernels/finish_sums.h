// The first half of an epilogue: activations that are cheap enough for registers. finish_row does the others.
#pragma once

#include "kernels/apply_activation.h"
#include "kernels/epilogue.h"
#include "kernels/unroll.h"

namespace softneuro::SN_ISA {

SN_INLINE bool finishes_in_registers(ActivationKind kind) {
  return is_clamp(kind) || kind == ActivationKind::hardswish;
}

template <int n>
SN_INLINE void finish_sums(Vf (&sum)[n], const Activation& activation) {
  if (activation.kind == ActivationKind::hardswish) {
    unroll<n>([&](auto i) { sum[i] = activate<ActivationKind::hardswish>(sum[i], sum[i], sum[i]); });
    return;
  }
  // Where the sums are short, these few operations are a tenth of the work: none too many.
  if (activation.kind == ActivationKind::relu) {
    unroll<n>([&](auto i) { sum[i] = at_least(sum[i], zero()); });
  } else if (activation.kind == ActivationKind::clamp) {
    const Vf lo = set(activation.a), hi = set(activation.b);
    unroll<n>([&](auto i) { sum[i] = clamp(sum[i], lo, hi); });
  }
}

// What finish_sums left to do, over pixels that were just written; then zero in the lanes past the first `channels`.
SN_INLINE void finish_rest(const Activation& activation, float* row, int pixels, int channels) {
  if (!finishes_in_registers(activation.kind)) {
    activate_row(row, row, static_cast<size_t>(pixels) * lanes, activation);
  }
  if (channels == lanes) return;
  for (int p = 0; p < pixels; ++p) store(row + p * lanes, load_n(row + p * lanes, channels));
}

}  // namespace softneuro::SN_ISA
