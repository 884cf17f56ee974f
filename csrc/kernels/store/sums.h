// The end of sums that a kernel has left in L1: rows of channels that are side by side in dst. There are instances for
// float32 and bytes and for activations that are clamps; store_rows does the others.
#pragma once

#include "kernels/store/rest.h"
#include "kernels/store/tiles.h"
#include "kernels/unroll.h"

namespace softneuro::SN_ISA {

// The end of sums is prepared once for all sums of a call. Sums are described by
//
//   at, stride, rows      the first, in L1; elements from row to row; rows
//   column, columns       of scale and bias, that they begin with; how many
//   in_dst, in_residual   elements from where dst and the residual begin, which have so many from row to row
//
// They have `most` vectors of columns at most, `apart` elements from each to the next.
template <class Sums, int most, int apart = lanes>
class EndOfSums {
 public:
  // stride: elements from row to row of dst and the residual.
  SN_INLINE EndOfSums(const Epilogue& epilogue, void* dst, ptrdiff_t stride)
      : epilogue_(epilogue),
        dst_(dst),
        stride_(stride),
        reading_(epilogue.residual.elements),
        writing_(epilogue.dst),
        bounds_(clamp_bounds(epilogue.activation)),
        limits_(epilogue.dst.type == DType::uint8 ? writing_.bounds(bounds_) : bounds_) {
    if (!is_clamp(epilogue.activation.kind)) return;
    if (epilogue.dst.type == DType::float32) of_ = functions_for<float>();
    if (epilogue.dst.type == DType::uint8) of_ = functions_for<uint8_t>();
  }

  SN_INLINE void finish(const Sums& sums) const {
    if (of_ != nullptr) return of_[(sums.columns + lanes - 1) / lanes](*this, sums);
    finish_otherwise(sums);
  }

 private:
  using Finish = void (*)(const EndOfSums&, const Sums&);
  template <class Dst, class Residual>
  struct Functions {
    Finish of[most + 1] = {};
    constexpr Functions() {
      unroll<most>([&](auto v) { of[v + 1] = finish_vectors<Dst, Residual, v + 1>; });
    }
  };
  template <class Dst, class Residual>
  static constexpr Functions<Dst, Residual> functions{};

  template <class Dst>
  SN_INLINE const Finish* functions_for() const {
    if (epilogue_.residual.is_float32()) return functions<Dst, float>.of;
    return epilogue_.residual.elements.type == DType::uint8 ? functions<Dst, uint8_t>.of : nullptr;
  }

  // Types that are not asked for are not used.
  template <class T>
  SN_INLINE Reading<T> reading() const {
    if constexpr (is_quantized<T>)
      return reading_;
    else
      return {};
  }
  template <class T>
  SN_INLINE Writing<T> writing() const {
    if constexpr (is_quantized<T>)
      return writing_;
    else
      return {};
  }

  template <class Dst, class Residual, int vectors>
  [[gnu::flatten]] static void finish_vectors(const EndOfSums& end, const Sums& sums) {
    const Epilogue& e = end.epilogue_;
    const Reading<Residual> reading = end.reading<Residual>();
    const Writing<Dst> writing = end.writing<Dst>();
    RowTile<Dst, Residual> t;
    t.dst = static_cast<Dst*>(end.dst_) + sums.in_dst(end.stride_);
    t.residual = e.residual.data != nullptr
                     ? static_cast<const Residual*>(e.residual.data) + sums.in_residual(end.stride_)
                     : nullptr;
    t.stride = end.stride_;
    t.bias = e.bias != nullptr ? e.bias + sums.column : nullptr;
    t.columns = sums.columns - (vectors - 1) * lanes;
    t.first = t.last = true;
    t.bounds = end.bounds_;
    t.rounded = e.rounded;
    const ClampBounds limits = end.limits_;
    const float* scale = e.scale + sums.column;
    auto from = sums.at;
    const ptrdiff_t stride = sums.stride;
    const auto finish = [&](auto rows) {
      decltype(load(from)) sum[rows.value * vectors];
      unroll<rows.value * vectors>([&](int i) { sum[i] = load(from + i / vectors * stride + i % vectors * apart); });
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

  [[gnu::noinline]] void finish_otherwise(const Sums& sums) const {
    for (int first = 0; first < sums.columns; first += lanes) {
      Epilogue e = epilogue_.from(sums.column + first, 0);
      if (e.residual.data != nullptr) {
        e.residual.data = element_at(e.residual.data, e.residual.elements.type, sums.in_residual(stride_) + first);
      }
      store_rows({.epilogue = e,
                  .sums = sums.at + first / lanes * apart,
                  .integers = !is_same<decltype(sums.at), const float*>,
                  .sums_stride = sums.stride,
                  .dst = element_at(dst_, e.dst.type, sums.in_dst(stride_) + first),
                  .stride = stride_,
                  .rows = sums.rows,
                  .columns = sums.columns - first < lanes ? sums.columns - first : lanes});
    }
  }

  const Epilogue& epilogue_;
  void* dst_;
  ptrdiff_t stride_;
  Reading<uint8_t> reading_;
  Writing<uint8_t> writing_;
  ClampBounds bounds_, limits_;
  const Finish* of_ = nullptr;  // by vectors; null: what store_rows does
};

}  // namespace softneuro::SN_ISA
