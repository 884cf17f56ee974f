// Finishes sums to elements of dst: gemm_int8's epilogue.
#pragma once

#include "kernels/gemm_int8/gemm_int8.h"
#include "kernels/store/sums.h"
#include "simd/integers.h"

namespace softneuro::SN_ISA {
namespace gemm_int8 {

constexpr int most_vectors = lanes == 16 ? 4 : 32 / lanes;  // of columns that are computed and finished together

// Sums of some rows and columns; where in dst they begin.
struct Sums {
  int32_t* at;
  ptrdiff_t stride;
  int row, rows, column, columns;

  SN_INLINE ptrdiff_t in_dst(ptrdiff_t dst_stride) const { return row * dst_stride + column; }
  SN_INLINE ptrdiff_t in_residual(ptrdiff_t dst_stride) const { return in_dst(dst_stride); }
};

// How the sums of one product end. Each are finished after the next ones' products were begun: what computes these is
// not what finishes those, and they go on side by side.
class Finisher {
 public:
  // memory: for twice `most` sums.
  SN_INLINE Finisher(const GemmInt8& g, int32_t* memory, int most)
      : g_(g), end_(g.epilogue, g.dst, g.dst_stride), next_(memory), other_(memory + most) {}
  // Where the next sums are stored.
  SN_INLINE int32_t* next() const { return next_; }
  SN_INLINE void add(const Sums& sums) {
    finish();
    last_ = sums;
    int32_t* const next = other_;
    other_ = next_;
    next_ = next;
  }
  SN_INLINE void finish() {
    if (last_.rows > 0) finish(last_);
    last_.rows = 0;
  }

 private:
  SN_INLINE void finish(const Sums& sums) const {
    if (g_.row_start != nullptr) add_row_starts(sums);
    if (g_.epilogue.dst.type == DType::int32) return copy(sums);
    end_.finish(sums);
  }

  void add_row_starts(const Sums& sums) const {
    for (int i = 0; i < sums.rows; ++i) {
      int32_t* row = sums.at + i * sums.stride;
      const int32_t start = g_.row_start[sums.row + i];
      for (int j = 0; j < sums.columns; j += lanes) store(row + j, load(row + j) + start);
    }
  }

  void copy(const Sums& sums) const {
    auto* to = static_cast<int32_t*>(g_.dst) + sums.row * g_.dst_stride + sums.column;
    for (int i = 0; i < sums.rows; ++i, to += g_.dst_stride) {
      const int32_t* from = sums.at + i * sums.stride;
      int j = 0;
      for (; j + lanes <= sums.columns; j += lanes) store(to + j, load(from + j));
      for (; j < sums.columns; ++j) to[j] = from[j];
    }
  }

  const GemmInt8& g_;
  EndOfSums<Sums, most_vectors> end_;
  int32_t *next_, *other_;
  Sums last_ = {};
};

}  // namespace gemm_int8
}  // namespace softneuro::SN_ISA
