// Finishes sums to elements of dst: gemm_int8's epilogue.
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
  int32_t* at;
  ptrdiff_t stride;
  int row, rows, column, columns;
};

// What all sums of a product have in common, prepared once. Types that are not asked for are not used.
struct Ends {
  const GemmInt8& g;
  Reading<uint8_t> reading;
  Writing<uint8_t> writing;
  ClampBounds bounds, limits;

  SN_INLINE explicit Ends(const GemmInt8& g)
      : g(g),
        reading(g.epilogue.residual.elements),
        writing(g.epilogue.dst),
        bounds(clamp_bounds(g.epilogue.activation)),
        limits(g.epilogue.dst.type == DType::uint8 ? writing.bounds(bounds) : bounds) {}

  template <class T>
  SN_INLINE Reading<T> reading_of() const {
    if constexpr (is_quantized<T>)
      return reading;
    else
      return {};
  }
  template <class T>
  SN_INLINE Writing<T> writing_of() const {
    if constexpr (is_quantized<T>)
      return writing;
    else
      return {};
  }
};

template <class Dst, class Residual, int vectors>
[[gnu::flatten]] void finish_vectors(const Ends& ends, const Sums& sums) {
  const GemmInt8& g = ends.g;
  const ptrdiff_t at = sums.row * g.dst_stride + sums.column;
  const Epilogue& e = g.epilogue;
  const Reading<Residual> reading = ends.reading_of<Residual>();
  const Writing<Dst> writing = ends.writing_of<Dst>();
  RowTile<Dst, Residual> t;
  t.dst = static_cast<Dst*>(g.dst) + at;
  t.residual = e.residual.data != nullptr ? static_cast<const Residual*>(e.residual.data) + at : nullptr;
  t.stride = g.dst_stride;
  t.bias = e.bias != nullptr ? e.bias + sums.column : nullptr;
  t.columns = sums.columns - (vectors - 1) * lanes;
  t.first = t.last = true;
  t.bounds = ends.bounds;
  t.rounded = e.rounded;
  const ClampBounds limits = ends.limits;
  const float* scale = e.scale + sums.column;
  const int32_t* from = sums.at;
  const ptrdiff_t stride = sums.stride;
  const auto finish = [&](auto rows) {
    Vi sum[rows.value * vectors];
    unroll<rows.value * vectors>([&](int i) { sum[i] = load(from + i / vectors * stride + i % vectors * lanes); });
    finish_rows<rows.value, vectors>(t, sum, scale, reading, writing, limits);
    from += rows * stride;
    t.dst += rows * t.stride;
    if (t.residual != nullptr) t.residual += rows * t.stride;
  };
  constexpr int together = has_fours && vectors < 4 ? 4 / vectors : 1;
  int left = sums.rows;
  for (; left >= together; left -= together) finish(Index<together>{});
  for (; left > 0; --left) finish(Index<1>{});
}

using Finish = void (*)(const Ends&, const Sums&);
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

// How the sums of one product end. Each are finished after the next ones' products were begun: what computes these is
// not what finishes those, and they go on side by side.
class Finisher {
 public:
  // memory: for twice `most` sums.
  SN_INLINE Finisher(const GemmInt8& g, int32_t* memory, int most) : ends_(g), next_(memory), other_(memory + most) {
    const Epilogue& e = g.epilogue;
    if (!is_clamp(e.activation.kind)) return;
    if (e.dst.type == DType::float32) of_ = finish_for<float>(e.residual);
    if (e.dst.type == DType::uint8) of_ = finish_for<uint8_t>(e.residual);
  }
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
    if (ends_.g.row_start != nullptr) add_row_starts(sums);
    if (ends_.g.epilogue.dst.type == DType::int32) return copy(sums);
    if (of_ != nullptr) return of_[(sums.columns + lanes - 1) / lanes](ends_, sums);
    const GemmInt8& g = ends_.g;
    const size_t at = sums.row * g.dst_stride + sums.column;
    store_rows({.epilogue = g.epilogue.from(sums.column, at),
                .sums = sums.at,
                .integers = true,
                .sums_stride = sums.stride,
                .dst = element_at(g.dst, g.epilogue.dst.type, at),
                .stride = g.dst_stride,
                .rows = sums.rows,
                .columns = sums.columns});
  }

  void add_row_starts(const Sums& sums) const {
    for (int i = 0; i < sums.rows; ++i) {
      int32_t* row = sums.at + i * sums.stride;
      const int32_t start = ends_.g.row_start[sums.row + i];
      for (int j = 0; j < sums.columns; j += lanes) store(row + j, load(row + j) + start);
    }
  }

  void copy(const Sums& sums) const {
    auto* to = static_cast<int32_t*>(ends_.g.dst) + sums.row * ends_.g.dst_stride + sums.column;
    for (int i = 0; i < sums.rows; ++i, to += ends_.g.dst_stride) {
      const int32_t* from = sums.at + i * sums.stride;
      int j = 0;
      for (; j + lanes <= sums.columns; j += lanes) store(to + j, load(from + j));
      for (; j < sums.columns; ++j) to[j] = from[j];
    }
  }

  Ends ends_;
  int32_t *next_, *other_;
  Sums last_ = {};
  const Finish* of_ = nullptr;  // by vectors; null: what store_rows does
};

}  // namespace gemm_int8
}  // namespace softneuro::SN_ISA
