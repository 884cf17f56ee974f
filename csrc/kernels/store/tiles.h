// The end of a tile of sums in registers. Activations that are not done here are done to what was written (rest.h).
#pragma once

#include "kernels/store/activations.h"
#include "kernels/store/policy.h"
#include "kernels/store/rest.h"
#include "kernels/unroll.h"

namespace softneuro::SN_ISA {

// Asks for a line that sums are going to be stored to, early: stores wait for their lines one after the other.
SN_INLINE void prefetch_to_write(const float* p) { __builtin_prefetch(p, 1, 3); }

// Activations that finish_sums and finish_tile do; finish_rows does clamps.
SN_INLINE bool finishes_in_registers(ActivationKind kind) {
  return is_clamp(kind) || kind == ActivationKind::hardswish;
}

template <int n>
SN_INLINE void finish_sums(Vf (&sum)[n], const Activation& activation) {
  if (activation.kind == ActivationKind::hardswish) {
    unroll<n>([&](int i) { sum[i] = activate<ActivationKind::hardswish>(sum[i], sum[i], sum[i]); });
    return;
  }
  // Where the sums are short, these few operations are a tenth of the work: none too many.
  if (activation.kind == ActivationKind::relu) {
    unroll<n>([&](int i) { sum[i] = at_least(sum[i], zero()); });
  } else if (activation.kind == ActivationKind::clamp) {
    const Vf lo = set(activation.a), hi = set(activation.b);
    unroll<n>([&](int i) { sum[i] = clamp(sum[i], lo, hi); });
  }
}

// Values of a tile whose row a is of the channels from scale + a * lanes on, and bias likewise (null: none).
template <int rows, int count, class Sum, int n>
SN_INLINE void scale_tile(const Sum (&sum)[n], const float* scale, const float* bias, Vf (&value)[n]) {
  static_assert(rows * count == n);
  unroll<rows>([&](int a) {
    const Vf factor = load(scale + a * lanes), start = bias != nullptr ? load(bias + a * lanes) : zero();
    unroll<count>([&](int b) { value[a * count + b] = fused(to_float(sum[a * count + b]), factor, start); });
  });
}

// Writes a tile: row a of `count` values to dst + a * row_stride, value b of it `step` elements further each; the
// residual (null: none) lies likewise. last: finish, else only store sums, in floats. Each way out has stores of its
// own: were the sums to meet again before them, g++ 12 would shuffle and spill them, which costs short sums a tenth.
template <int rows, int count, int n, class Dst, class Residual>
SN_INLINE void finish_tile(Vf (&sum)[n], bool last, const Activation* activation, Dst* dst, const Residual* residual,
                           size_t row_stride, size_t step, Reading<Residual> reading, Writing<Dst> writing) {
  static_assert(rows * count == n);
  const auto each = [&](const auto& body) {
    unroll<rows>([&](int a) { unroll<count>([&](int b) { body(a * row_stride + b * step, sum[a * count + b]); }); });
  };
  if (last && residual != nullptr) {
    each([&, reading](size_t at, Vf& x) { x = reading.add_to(x, residual + at); });
  }
  if (last && activation->kind == ActivationKind::hardswish) {
    each([&, writing](size_t at, const Vf& x) {
      writing.put_any(dst + at, writing.steps(activate<ActivationKind::hardswish>(x, x, x)));
    });
  } else {
    // Without an activation too: clamping costs less than one more way out.
    ClampBounds bounds;
    if (last) bounds = clamp_bounds(*activation);
    bounds = writing.bounds(bounds);
    const Vf lo = set(bounds.lo), hi = set(bounds.hi);
    each([&, writing](size_t at, const Vf& x) { writing.put(dst + at, clamp(writing.steps(x), lo, hi)); });
  }
}
template <int rows, int count, int n>
SN_INLINE void finish_tile(Vf (&sum)[n], bool last, const Activation* activation, float* dst, const float* residual,
                           size_t row_stride, size_t step) {
  finish_tile<rows, count>(sum, last, activation, dst, residual, row_stride, step, Reading<float>(), Writing<float>());
}

// What these left to do, over pixels that were just written; then zero in the lanes past the first `channels`.
SN_INLINE void finish_rest(const Activation& activation, float* row, int pixels, int channels) {
  finish_written(activation, finishes_in_registers(activation.kind), row, pixels, channels);
}

// A tile of sums whose rows are rows of dst: matrix products, convolutions on channels-last blobs.
template <class Dst = float, class Residual = float>
struct RowTile {
  Dst* dst;
  const Residual* residual;  // null: none
  ptrdiff_t stride;          // of dst and residual
  const float* bias;         // at row 0, column 0 of the tile; null: none
  bool bias_per_row = false;
  int columns;       // of the last vector
  bool first, last;  // start from nothing, else from dst; finish, else only store the sums: both true but for floats
  ClampBounds bounds;
  RoundedSum rounded = {};
};

template <int panel, class T>
SN_INLINE auto load_column(const T* row, int vector, int columns) {
  return vector + 1 < panel ? load(row + vector * lanes) : load_n(row + vector * lanes, columns);
}

// scale lies as bias; null: 1. limits: writing.bounds(t.bounds).
template <int rows, int panel, class Sum, class Dst, class Residual>
SN_INLINE void finish_rows(const RowTile<Dst, Residual>& t, const Sum* products, const float* scale,
                           Reading<Residual> reading, Writing<Dst> writing, const ClampBounds& limits) {
  // A copy: were the sums themselves handed around here, g++ 12 would also store them in every step of the loops.
  Vf sum[rows * panel];
  unroll<rows * panel>([&](int i) { sum[i] = to_float(products[i]); });
  const auto each = [&](const auto& body) {
    unroll<rows>([&](int i) { unroll<panel>([&](int v) { body(i, v, sum[i * panel + v]); }); });
  };
  if constexpr (is_same<Dst, float>) {
    if (!t.first) {
      each([&](auto i, auto v, Vf& x) { x = x + load_column<panel>(t.dst + i * t.stride, v, t.columns); });
    }
  }
  if (t.last) {
    if (scale != nullptr && t.bias_per_row) {
      each([&](auto i, auto, Vf& x) { x = fused(x, set(scale[i]), t.bias != nullptr ? set(t.bias[i]) : zero()); });
    } else if (scale != nullptr) {
      each([&](auto, auto v, Vf& x) {
        const Vf bias = t.bias != nullptr ? load_column<panel>(t.bias, v, t.columns) : zero();
        x = fused(x, load_column<panel>(scale, v, t.columns), bias);
      });
    } else if (t.bias != nullptr && t.bias_per_row) {
      each([&](auto i, auto, Vf& x) { x = x + set(t.bias[i]); });
    } else if (t.bias != nullptr) {
      each([&](auto, auto v, Vf& x) { x = x + load_column<panel>(t.bias, v, t.columns); });
    }
    if constexpr (is_quantized<Dst> && is_quantized<Residual>) {
      if (t.rounded.step != 0) {
        const Vf least = set(t.rounded.least), most = set(t.rounded.most), step = set(t.rounded.step);
        each([&](auto, auto, Vf& x) { x = round(clamp(x, least, most)) * step; });
      }
    }
    if (t.residual != nullptr) {
      each([&, reading](auto i, auto v, Vf& x) {
        const Residual* from = t.residual + i * t.stride + v * lanes;
        x = v + 1 < panel ? reading.add_to(x, from) : reading.add_to(x, from, t.columns);
      });
    }
    const Vf lo = set(limits.lo), hi = set(limits.hi);
    // Only floats that are added can be NaN.
    if constexpr (has_fours && is_quantized<Dst> && rows == 4 / panel) {
      if (is_quantized<Residual> || t.residual == nullptr) {
        if (!writing.are_steps()) each([&, writing](auto, auto, Vf& x) { x = writing.steps(x); });
        each([&](auto, auto, Vf& x) { x = at_most(x, hi); });
        writing.template put_four<panel>(t.dst, t.stride, (panel - 1) * lanes + t.columns, sum, limits);
        return;
      }
    }
    each([&, writing](auto, auto, Vf& x) { x = clamp(writing.steps(x), lo, hi); });
  }
  each([&, writing](auto i, auto v, Vf& x) {
    Dst* at = t.dst + i * t.stride + v * lanes;
    if (v + 1 < panel || t.columns == lanes) {
      writing.put(at, x);
    } else {
      writing.put(at, x, t.columns);
    }
  });
}

template <int rows, int panel, class Sum, class Dst, class Residual>
SN_INLINE void finish_rows(const RowTile<Dst, Residual>& t, const Sum* products, const float* scale,
                           Reading<Residual> reading, Writing<Dst> writing) {
  finish_rows<rows, panel>(t, products, scale, reading, writing, writing.bounds(t.bounds));
}
template <int rows, int panel>
SN_INLINE void finish_rows(const RowTile<>& t, const Vf* sums) {
  finish_rows<rows, panel>(t, sums, nullptr, Reading<float>(), Writing<float>());
}

}  // namespace softneuro::SN_ISA
