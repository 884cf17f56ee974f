// The softmax kernels over Vf; a level's file instantiates the table.
#pragma once

#include "kernels/reduce/accumulate.h"
#include "kernels/softmax/softmax.h"
#include "kernels/store/visit.h"
#include "simd/math.h"

namespace softneuro::SN_ISA {

// The base is subtracted from elements of this maximum, and the divisor divides them.
SN_INLINE Vf base_of(Vf most, bool safe) {
  return safe ? select(eq(most, set(-__builtin_inff())), zero(), most) : most;
}
SN_INLINE Vf divisor_of(Vf sum, bool safe) { return safe ? select(eq(sum, zero()), set(1.0f), sum) : sum; }

template <bool log_of>
[[gnu::noinline, gnu::noclone]] void softmax_rows(float* dst, const float* src, int64_t rows, int64_t count,
                                                  bool safe) {
  for (int64_t r = 0; r < rows; ++r, src += count, dst += count) {
    const Vf most = base_of(set(max_row(src, count)), safe);
    const auto map = [&](const float* from, const auto& f) {
      int64_t i = 0;
      for (; i + lanes <= count; i += lanes) store(dst + i, f(load(from + i)));
      if (i < count) {
        const int rest = static_cast<int>(count - i);
        store_n(dst + i, f(load_n(from + i, rest)), rest);
      }
    };
    if constexpr (log_of) {
      const float sum = sum_row(src, count, [&](Vf x, int used) {
        const Vf e = exp(x - most);
        return used < lanes ? first_or(e, used, zero()) : e;
      });
      const Vf log_sum = log(set(sum));
      map(src, [&](Vf x) { return x - most - log_sum; });
    } else {
      map(src, [&](Vf x) { return exp(x - most); });
      const Vf sum = divisor_of(set(sum_row(dst, count, [](Vf x, int) { return x; })), safe);
      map(dst, [&](Vf x) { return x / sum; });
    }
  }
}

// `width` vectors of columns at once, `used` lanes of the last; `to` and `from` are the strides.
template <bool log_of, int width>
SN_INLINE void softmax_strip(float* dst, const float* src, int64_t count, int64_t to, int64_t from, int used,
                             bool safe) {
  const auto read = [&](const float* row, int j) {
    return width == 1 && used < lanes ? load_n(row, used) : load(row + j * lanes);
  };
  const auto write = [&](float* row, int j, Vf x) {
    if (width == 1 && used < lanes) return store_n(row, x, used);
    store(row + j * lanes, x);
  };
  const auto each = [&](const auto& body) {
    for (int64_t k = 0; k < count; ++k) {
#pragma GCC unroll 4
      for (int j = 0; j < width; ++j) body(src + k * from, dst + k * to, j);
    }
  };
  Vf most[width];
  CompensatedSum sum[width];
#pragma GCC unroll 4
  for (int j = 0; j < width; ++j) most[j] = set(-__builtin_inff());
  each([&](const float* x, float*, int j) { most[j] = max(most[j], read(x, j)); });
#pragma GCC unroll 4
  for (int j = 0; j < width; ++j) most[j] = base_of(most[j], safe);
  each([&](const float* x, float* y, int j) {
    const Vf e = exp(read(x, j) - most[j]);
    if constexpr (!log_of) write(y, j, e);
    sum[j].add(e);
  });
#pragma GCC unroll 4
  for (int j = 0; j < width; ++j) {
    sum[j].total = log_of ? log(sum[j].total) : divisor_of(sum[j].total, safe);
  }
  each([&](const float* x, float* y, int j) {
    write(y, j, log_of ? read(x, j) - most[j] - sum[j].total : read(y, j) / sum[j].total);
  });
}

template <bool log_of>
void softmax_columns(float* dst, const float* src, int64_t count, int64_t to, int64_t from, int64_t columns,
                     bool safe) {
  int64_t i = 0;
  for (; i + 4 * lanes <= columns; i += 4 * lanes) {
    softmax_strip<log_of, 4>(dst + i, src + i, count, to, from, lanes, safe);
  }
  for (; i < columns; i += lanes) {
    const int used = columns - i < lanes ? static_cast<int>(columns - i) : lanes;
    softmax_strip<log_of, 1>(dst + i, src + i, count, to, from, used, safe);
  }
}

SN_INLINE bool all_floats(const SoftmaxArgs& a) { return a.to.type == DType::float32 && a.from.type == DType::float32; }

template <bool log_of>
void softmax_any_rows(const SoftmaxArgs& a) {
  if (all_floats(a)) {
    return softmax_rows<log_of>(static_cast<float*>(a.dst), static_cast<const float*>(a.src), a.number, a.count,
                                a.safe);
  }
  for (int64_t r = 0; r < a.number; ++r) {
    read_values(a.from, a.src, r * a.count, a.count, a.scratch);
    softmax_rows<log_of>(a.scratch, a.scratch, 1, a.count, a.safe);
    write_values(a.to, a.scratch, a.dst, r * a.count, a.count);
  }
}

template <bool log_of>
void softmax_any_columns(const SoftmaxArgs& a) {
  if (all_floats(a)) {
    return softmax_columns<log_of>(static_cast<float*>(a.dst), static_cast<const float*>(a.src), a.count, a.dst_stride,
                                   a.src_stride, a.number, a.safe);
  }
  constexpr int64_t strip = SoftmaxArgs::columns_at_once;
  for (int64_t i = 0; i < a.number; i += strip) {
    const int64_t n = a.number - i < strip ? a.number - i : strip;
    for (int64_t k = 0; k < a.count; ++k) read_values(a.from, a.src, k * a.src_stride + i, n, a.scratch + k * strip);
    softmax_columns<log_of>(a.scratch, a.scratch, a.count, strip, strip, n, a.safe);
    for (int64_t k = 0; k < a.count; ++k) write_values(a.to, a.scratch + k * strip, a.dst, k * a.dst_stride + i, n);
  }
}

}  // namespace softneuro::SN_ISA

namespace softneuro {

SN_KERNEL_TABLE(SoftmaxKernels, softmax) = {
    .rows = {SN_ISA::softmax_any_rows<false>, SN_ISA::softmax_any_rows<true>},
    .columns = {SN_ISA::softmax_any_columns<false>, SN_ISA::softmax_any_columns<true>}};

}  // namespace softneuro
