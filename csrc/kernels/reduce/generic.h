// The reduction kernels over Vf; a level's file instantiates the table.
#pragma once

#include "kernels/reduce/accumulate.h"
#include "kernels/reduce/reduce.h"

namespace softneuro::SN_ISA {

constexpr bool is_sum(ReduceOp op) { return op != ReduceOp::max && op != ReduceOp::min; }

// Each element is turned into this before it is reduced.
template <ReduceOp op>
SN_INLINE Vf reduced(Vf x) {
  return op == ReduceOp::squares ? x * x : op == ReduceOp::magnitudes ? abs(x) : x;
}

template <ReduceOp op>
void reduce_rows(float* dst, const float* src, int64_t rows, int64_t count, int64_t stride) {
  for (int64_t r = 0; r < rows; ++r, src += stride) {
    if constexpr (is_sum(op)) {
      dst[r] = sum_row(src, count, [](Vf x, int) { return reduced<op>(x); });
    } else {
      dst[r] = extreme_row<op == ReduceOp::max>(src, count);
    }
  }
}

template <ReduceOp op>
SN_INLINE Vf reduce_pair(Vf a, Vf b) {
  return is_sum(op) ? a + b : op == ReduceOp::max ? max(a, b) : min(a, b);
}

// `width` vectors of columns at once, `used` lanes of the last; four results are in flight, so that none waits for its
// predecessor.
template <ReduceOp op, int width>
SN_INLINE void reduce_strip(float* dst, const float* src, int64_t count, int64_t stride, int used) {
  constexpr int ways = 4 / width;
  const bool whole = width > 1 || used == lanes;
  const auto read = [&](const float* p) { return whole ? load(p) : load_n(p, used); };
  CompensatedSum sum[width];
  const Vf start = is_sum(op) ? zero() : set(op == ReduceOp::max ? -__builtin_inff() : __builtin_inff());
  Vf part[ways][width];
  const auto reset = [&] {
#pragma GCC unroll 4
    for (int w = 0; w < ways; ++w) {
#pragma GCC unroll 4
      for (int j = 0; j < width; ++j) part[w][j] = start;
    }
  };
  const auto take = [&](int w, const float* row) {
#pragma GCC unroll 4
    for (int j = 0; j < width; ++j) part[w][j] = reduce_pair<op>(part[w][j], reduced<op>(read(row + j * lanes)));
  };
  const auto together = [&](int j) {
    Vf all = part[0][j];
#pragma GCC unroll 4
    for (int w = 1; w < ways; ++w) all = reduce_pair<op>(all, part[w][j]);
    return all;
  };
  reset();
  for (int64_t k = 0; k < count;) {
    const int64_t end = count - k < plain_vectors ? count : k + plain_vectors;
    for (; k + ways <= end; k += ways) {
#pragma GCC unroll 4
      for (int w = 0; w < ways; ++w) take(w, src + (k + w) * stride);
    }
    for (; k < end; ++k) take(0, src + k * stride);
    if constexpr (is_sum(op)) {
#pragma GCC unroll 4
      for (int j = 0; j < width; ++j) sum[j].add(together(j));
      reset();
    }
  }
#pragma GCC unroll 4
  for (int j = 0; j < width; ++j) {
    const Vf result = is_sum(op) ? sum[j].total : together(j);
    if (whole) {
      store(dst + j * lanes, result);
    } else {
      store_n(dst, result, used);
    }
  }
}

template <ReduceOp op>
void reduce_columns(float* dst, const float* src, int64_t count, int64_t stride, int64_t columns) {
  int64_t i = 0;
  for (; i + 4 * lanes <= columns; i += 4 * lanes) reduce_strip<op, 4>(dst + i, src + i, count, stride, lanes);
  for (; i < columns; i += lanes) {
    const int used = columns - i < lanes ? static_cast<int>(columns - i) : lanes;
    reduce_strip<op, 1>(dst + i, src + i, count, stride, used);
  }
}

}  // namespace softneuro::SN_ISA

namespace softneuro {

SN_KERNEL_TABLE(ReduceKernels, reduce) = {
    {SN_ISA::reduce_rows<ReduceOp::sum>, SN_ISA::reduce_rows<ReduceOp::max>, SN_ISA::reduce_rows<ReduceOp::min>,
     SN_ISA::reduce_rows<ReduceOp::squares>, SN_ISA::reduce_rows<ReduceOp::magnitudes>},
    {SN_ISA::reduce_columns<ReduceOp::sum>, SN_ISA::reduce_columns<ReduceOp::max>,
     SN_ISA::reduce_columns<ReduceOp::min>, SN_ISA::reduce_columns<ReduceOp::squares>,
     SN_ISA::reduce_columns<ReduceOp::magnitudes>}};

}  // namespace softneuro
