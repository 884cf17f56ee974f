// What is left of a kernel's end to rows. Contracts: rest.h, store.h.
#pragma once

#include "kernels/store/activations.h"
#include "kernels/store/policy.h"
#include "kernels/store/rest.h"
#include "kernels/store/visit.h"
#include "kernels/unroll.h"

namespace softneuro::SN_ISA {

void activate_row(float* dst, const float* src, size_t n, const Activation& activation) {
  const Vf a = set(activation.a), b = set(activation.b);
  with_activation(activation.kind, [&]<ActivationKind kind>() {
    size_t i = 0;
    for (; i + lanes <= n; i += lanes) store(dst + i, activate<kind>(load(src + i), a, b));
    if (i < n) {
      const int rest = static_cast<int>(n - i);
      store_n(dst + i, activate<kind>(load_n(src + i, rest), a, b), rest);
    }
  });
}

void read_values(const ElementFormat& elements, const void* src, int64_t first, int64_t n, float* values) {
  with_elements(elements.type, [&]<class T>() {
    const Reading<T> reading(elements);
    const T* from = static_cast<const T*>(src) + first;
    int64_t i = 0;
    for (; i + lanes <= n; i += lanes) store(values + i, reading.value(from + i));
    const int rest = static_cast<int>(n - i);
    if (rest > 0) store_n(values + i, reading.value(from + i, rest), rest);
  });
}

void write_values(const ElementFormat& elements, const float* values, void* dst, int64_t first, int64_t n) {
  with_elements(elements.type, [&]<class T>() {
    const Writing<T> writing(elements);
    const ClampBounds bounds = writing.bounds({});
    const auto steps = [&](Vf x) {
      return is_quantized<T> ? clamp(writing.steps(x), set(bounds.lo), set(bounds.hi)) : x;
    };
    T* to = static_cast<T*>(dst) + first;
    int64_t i = 0;
    for (; i + lanes <= n; i += lanes) writing.put(to + i, steps(load(values + i)));
    const int rest = static_cast<int>(n - i);
    if (rest > 0) writing.put(to + i, steps(load_n(values + i, rest)), rest);
  });
}

namespace store_rows_detail {

// Vectors, of consecutive rows, whose values are in a buffer between two steps: the types of either step have loops of
// their own, not each pair of them.
constexpr int most = 16;

// The vector at `column` of some rows.
struct Part {
  int row, rows, column;
  int n;  // columns that there are
};

struct NoResidual {};

template <class Sum, class Residual>
void take_values(const StoreRows& r, const Part& part, float* values) {
  const Epilogue& e = r.epilogue;
  const ClampBounds bounds = clamp_bounds(e.activation);
  const Vf lo = set(bounds.lo), hi = set(bounds.hi);
  Vf scale = set(1), bias = zero();
  if (e.scale != nullptr && !r.per_row) scale = load_n(e.scale + part.column, part.n);
  if (e.bias != nullptr && !r.per_row) bias = load_n(e.bias + part.column, part.n);
  const auto* sums = static_cast<const Sum*>(r.sums) + part.row * r.sums_stride + part.column;
  for (int i = 0; i < part.rows; ++i, sums += r.sums_stride) {
    if (e.scale != nullptr && r.per_row) scale = set(e.scale[part.row + i]);
    if (e.bias != nullptr && r.per_row) bias = set(e.bias[part.row + i]);
    const Vf sum = to_float(part.n == lanes ? load(sums) : load_n(sums, part.n));
    Vf x = is_same<Sum, float> ? fma(sum, scale, bias) : fused(sum, scale, bias);
    if constexpr (!is_same<Residual, NoResidual>) {
      const Reading<Residual> residual(e.residual.elements);
      const auto* from = static_cast<const Residual*>(e.residual.data) + (part.row + i) * r.stride + part.column;
      x = part.n == lanes ? residual.add_to(x, from) : residual.add_to(x, from, part.n);
    }
    store(values + i * lanes, clamp(x, lo, hi));
  }
}

template <class Dst>
void put_values(const StoreRows& r, const Part& part, const float* values) {
  const Writing<Dst> writing(r.epilogue.dst);
  const ClampBounds bounds = writing.bounds({});
  const Vf lo = set(bounds.lo), hi = set(bounds.hi);
  const int width = r.padded ? lanes : part.n;
  Dst* dst = static_cast<Dst*>(r.dst) + part.row * r.stride + part.column;
  for (int i = 0; i < part.rows; ++i, dst += r.stride, values += lanes) {
    const Vf x = clamp(writing.steps(load_n(values, part.n)), lo, hi);
    width == lanes ? writing.put(dst, x) : writing.put(dst, x, width);
  }
}

template <class Sum>
SN_INLINE void take(const StoreRows& r, const Part& part, float* values) {
  if (r.epilogue.residual.data == nullptr) return take_values<Sum, NoResidual>(r, part, values);
  with_elements(r.epilogue.residual.elements.type, [&]<class T>() { take_values<Sum, T>(r, part, values); });
}

}  // namespace store_rows_detail

void store_rows(const StoreRows& r) {
  using namespace store_rows_detail;
  alignas(64) float values[most * lanes];
  for (int column = 0; column < r.columns; column += lanes) {
    const int n = r.columns - column < lanes ? r.columns - column : lanes;
    for (int row = 0; row < r.rows; row += most) {
      const Part part{row, r.rows - row < most ? r.rows - row : most, column, n};
      r.integers ? take<int32_t>(r, part, values) : take<float>(r, part, values);
      const Activation& activation = r.epilogue.activation;
      if (!is_clamp(activation.kind)) {
        activate_row(values, values, static_cast<size_t>(part.rows) * lanes, activation);
      }
      with_elements(r.epilogue.dst.type, [&]<class T>() { put_values<T>(r, part, values); });
    }
  }
}

}  // namespace softneuro::SN_ISA

namespace softneuro {

SN_KERNEL_TABLE(StoreKernels, store) = {.rows = SN_ISA::store_rows};

}  // namespace softneuro
