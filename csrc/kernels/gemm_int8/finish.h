// From sums to elements of dst: gemm_int8's epilogue.
#pragma once

#include "kernels/gemm_int8/gemm_int8.h"
#include "kernels/store/rest.h"
#include "kernels/store/tiles.h"
#include "kernels/unroll.h"
#include "simd/integers.h"

namespace softneuro::SN_ISA {
namespace gemm_int8 {

constexpr int most_vectors = lanes == 16 ? 4 : 32 / lanes;  // of columns that are computed and finished together

// Sums of some rows and columns; where in dst they begin.
struct Sums {
  const int32_t* at;
  ptrdiff_t stride;
  int row, rows, column, columns;
};

template <class Dst, class Residual, int vectors>
[[gnu::flatten]] void finish_vectors(const GemmInt8& g, const Sums& sums) {
  const ptrdiff_t at = sums.row * g.dst_stride + sums.column;
  const Epilogue& e = g.epilogue;
  const Reading<Residual> reading(e.residual.elements);
  const Writing<Dst> writing(e.dst);
  RowTile<Dst, Residual> t;
  t.dst = static_cast<Dst*>(g.dst) + at;
  t.residual = e.residual.data != nullptr ? static_cast<const Residual*>(e.residual.data) + at : nullptr;
  t.stride = g.dst_stride;
  t.bias = e.bias != nullptr ? e.bias + sums.column : nullptr;
  t.columns = sums.columns - (vectors - 1) * lanes;
  t.first = t.last = true;
  t.bounds = clamp_bounds(e.activation);
  const float* scale = e.scale + sums.column;
  const int32_t* from = sums.at;
  for (int i = 0; i < sums.rows; ++i, from += sums.stride) {
    Vi sum[vectors];
    unroll<vectors>([&](auto v) { sum[v] = load(from + v * lanes); });
    finish_rows<1, vectors>(t, sum, scale, reading, writing);
    t.dst += t.stride;
    if (t.residual != nullptr) t.residual += t.stride;
  }
}

using Finish = void (*)(const GemmInt8&, const Sums&);
template <class Dst, class Residual>
struct FinishTable {
  Finish of[most_vectors + 1] = {};
  constexpr FinishTable() {
    unroll<most_vectors>([&](auto v) { of[v + 1] = finish_vectors<Dst, Residual, v + 1>; });
  }
};
template <class Dst, class Residual>
constexpr FinishTable<Dst, Residual> finish_table;

template <class Dst>
SN_INLINE const Finish* finish_for(const Residual& residual) {
  if (residual.is_float32()) return finish_table<Dst, float>.of;
  return residual.elements.type == DType::uint8 ? finish_table<Dst, uint8_t>.of : nullptr;
}

// How the sums of one product end.
class Finisher {
 public:
  SN_INLINE explicit Finisher(const GemmInt8& g) : g_(g) {
    const Epilogue& e = g.epilogue;
    if (!is_clamp(e.activation.kind)) return;
    if (e.dst.type == DType::float32) of_ = finish_for<float>(e.residual);
    if (e.dst.type == DType::uint8) of_ = finish_for<uint8_t>(e.residual);
  }
  SN_INLINE void operator()(const Sums& sums) const {
    if (of_ != nullptr) return of_[(sums.columns + lanes - 1) / lanes](g_, sums);
    const size_t at = sums.row * g_.dst_stride + sums.column;
    store_rows({.epilogue = g_.epilogue.from(sums.column, at),
                .sums = sums.at,
                .integers = true,
                .sums_stride = sums.stride,
                .dst = element_at(g_.dst, g_.epilogue.dst.type, at),
                .stride = g_.dst_stride,
                .rows = sums.rows,
                .columns = sums.columns});
  }

 private:
  const GemmInt8& g_;
  const Finish* of_ = nullptr;  // by vectors; null: what store_rows does
};

}  // namespace gemm_int8
}  // namespace softneuro::SN_ISA
