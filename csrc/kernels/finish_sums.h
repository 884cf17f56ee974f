// The first half of an epilogue: activations that are cheap enough for registers. finish_row does the others.
#pragma once

#include "kernels/apply_activation.h"
#include "kernels/epilogue.h"
#include "kernels/unroll.h"

namespace softneuro::SN_ISA {

// Asks for a line that sums are going to be stored to, early: stores wait for their lines one after the other.
SN_INLINE void prefetch_to_write(const float* p) { __builtin_prefetch(p, 1, 3); }

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

// Writes a tile: row a of `count` sums to dst + a * row_stride, sum b of it `step` floats further each; the residual
// (null: none) lies likewise. last: finish the sums, else only store them. Each way out has stores of its own: were the
// sums to meet again before them, g++ 12 would shuffle and spill them, which costs short sums a tenth.
template <int rows, int count, int n>
SN_INLINE void finish_tile(Vf (&sum)[n], bool last, const Activation* activation, float* dst, const float* residual,
                           size_t row_stride, size_t step) {
  static_assert(rows * count == n);
  const auto each = [&](const auto& body) {
    unroll<rows>([&](auto a) { unroll<count>([&](auto b) { body(a * row_stride + b * step, sum[a * count + b]); }); });
  };
  if (last && residual != nullptr) {
    each([&](size_t at, Vf& x) { x = x + load(residual + at); });
  }
  if (last && activation->kind == ActivationKind::hardswish) {
    each([&](size_t at, const Vf& x) { store(dst + at, activate<ActivationKind::hardswish>(x, x, x)); });
  } else {
    // Without an activation too: clamping costs less than one more way out.
    ClampBounds bounds;
    if (last) bounds = clamp_bounds(*activation);
    const Vf lo = set(bounds.lo), hi = set(bounds.hi);
    each([&](size_t at, const Vf& x) { store(dst + at, clamp(x, lo, hi)); });
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
