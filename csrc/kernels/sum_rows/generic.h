#include "kernels/store/policy.h"
#include "kernels/store/rest.h"
#include "kernels/sum_rows/sum_rows.h"
#include "kernels/unroll.h"

namespace softneuro::SN_ISA {

// `vectors` of them from `at` on, where all rows have values; the last one of `columns` floats.
template <int vectors>
[[gnu::flatten]] inline void sum_piece(const SumRows& p, const ClampBounds& bounds, int at, int columns) {
  const auto read = [&](const float* row, auto v) {
    return v + 1 < vectors ? load(row + v * lanes) : load_n(row + v * lanes, columns);
  };
  Vf sum[vectors];
  unroll<vectors>([&](auto v) { sum[v] = set(p.bias); });
  for (int r = 0; r < p.rows; ++r) {
    const float* row = p.src[r].values + (at - p.src[r].begin);
    unroll<vectors>([&](auto v) { sum[v] = sum[v] + read(row, v); });
  }
  if (p.residual != nullptr) {
    unroll<vectors>([&](auto v) { sum[v] = sum[v] + read(p.residual + at, v); });
  }
  const Vf lo = set(bounds.lo), hi = set(bounds.hi);
  unroll<vectors>([&](auto v) {
    Writing<float>().put(p.dst + at + v * lanes, clamp(sum[v], lo, hi), v + 1 < vectors ? lanes : columns);
  });
}

inline void sum_edge(const SumRows& p, const ClampBounds& bounds, int begin, int end) {
  const Vf lo = set(bounds.lo), hi = set(bounds.hi);
  for (int i = begin; i < end; ++i) {
    float sum = p.bias;
    for (int r = 0; r < p.rows; ++r) {
      const SumRow& row = p.src[r];
      if (i >= row.begin && i < row.end) sum += row.values[i - row.begin];
    }
    if (p.residual != nullptr) sum += p.residual[i];
    Writing<float>().put(p.dst + i, clamp(set(sum), lo, hi), 1);
  }
}

inline void sum_rows(const SumRows& p) {
  const ClampBounds bounds = clamp_bounds(p.activation);
  int begin = 0, end = p.n;
  for (int r = 0; r < p.rows; ++r) {
    if (p.src[r].begin > begin) begin = p.src[r].begin;
    if (p.src[r].end < end) end = p.src[r].end;
  }
  if (end < begin) end = begin;
  sum_edge(p, bounds, 0, begin);
  int at = begin;
  for (; at + 4 * lanes <= end; at += 4 * lanes) sum_piece<4>(p, bounds, at, lanes);
  for (; at < end; at += lanes) sum_piece<1>(p, bounds, at, end - at < lanes ? end - at : lanes);
  sum_edge(p, bounds, end, p.n);
  if (!is_clamp(p.activation.kind)) activate_row(p.dst, p.dst, static_cast<size_t>(p.n), p.activation);
}

}  // namespace softneuro::SN_ISA

namespace softneuro {

SN_KERNEL_TABLE(SumRowsKernel, sum_rows) = SN_ISA::sum_rows;

}  // namespace softneuro
