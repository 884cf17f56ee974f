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
  const ClampBounds bounds = clamp_bounds(activation);
  const Vf lo = set(bounds.lo), hi = set(bounds.hi);
  unroll<n>([&](auto i) { sum[i] = clamp(sum[i], lo, hi); });
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
