// The end of a kernel, a vector at a time, for any type of sums (Vf, Vi), of residuals and of results:
//
//   sum -> value          to_float(sum) * scale + bias, of integers the same bits at every level
//       -> + residual     Reading<Residual>
//       -> activation     here a clamp; the others are done to rows of values (rest.h), or by who knows the kind
//       -> stored         Writing<Dst>
//
// finish_tile and finish_rows (tiles.h) do it to tiles in registers, store_rows (rest.h) to sums in memory. Lambdas
// have these two by value: with floats they are nothing then. (By reference g++ 12 takes other registers in loops
// before.)
#pragma once

#include "kernels/epilogue.h"
#include "simd/fours.h"

namespace softneuro::SN_ISA {

template <class T>
constexpr bool is_quantized = sizeof(T) == 1;
template <class A, class B>
constexpr bool is_same = false;
template <class A>
constexpr bool is_same<A, A> = true;

// Reads elements as values. Lanes past n elements are anything.
template <class T, bool quantized = is_quantized<T>>
struct Reading {
  Reading() = default;
  SN_INLINE explicit Reading(const ElementFormat&) {}
  SN_INLINE Vf value(const T* p) const { return load(p); }
  SN_INLINE Vf value(const T* p, int n) const { return load_n(p, n); }
  SN_INLINE Vf add_to(Vf x, const T* p) const { return x + load(p); }
  SN_INLINE Vf add_to(Vf x, const T* p, int n) const { return x + load_n(p, n); }
};
template <class T>
class Reading<T, true> {
 public:
  SN_INLINE explicit Reading(const ElementFormat& e) : zero_(set(static_cast<float>(e.zero))), scale_(set(e.scale)) {}
  SN_INLINE Vf value(const T* p) const { return (load(p) - zero_) * scale_; }
  SN_INLINE Vf value(const T* p, int n) const { return (load_n(p, n) - zero_) * scale_; }
  SN_INLINE Vf add_to(Vf x, const T* p) const { return fused(load(p) - zero_, scale_, x); }
  SN_INLINE Vf add_to(Vf x, const T* p, int n) const { return fused(load_n(p, n) - zero_, scale_, x); }

 private:
  Vf zero_, scale_;
};

// Values as elements: what is put are steps(value), clamped to bounds(of the activation) even if there is none, as
// quantized elements have limits; put_any does without.
template <class T, bool quantized = is_quantized<T>>
struct Writing {
  Writing() = default;
  SN_INLINE explicit Writing(const ElementFormat&) {}
  SN_INLINE ClampBounds bounds(const ClampBounds& values) const { return values; }
  SN_INLINE Vf steps(Vf value) const { return value; }
  SN_INLINE void put(T* p, Vf steps) const { store(p, steps); }
  SN_INLINE void put(T* p, Vf steps, int n) const { store_n(p, steps, n); }
  SN_INLINE void put_any(T* p, Vf steps) const { store(p, steps); }
};
// Quantized elements round half to even. NaN becomes the value zero.
template <class T>
class Writing<T, true> {
 public:
  SN_INLINE explicit Writing(const ElementFormat& e)
      : per_unit_(1 / e.scale),
        least_(static_cast<float>((e.least < lowest ? lowest : e.least) - e.zero)),
        most_(static_cast<float>((e.most > highest ? highest : e.most) - e.zero)),
        zero_(Vi{} + e.zero) {}
  SN_INLINE ClampBounds bounds(const ClampBounds& values) const {
    return {within(values.lo * per_unit_), within(values.hi * per_unit_)};
  }
  SN_INLINE Vf steps(Vf value) const { return value * set(per_unit_); }
  SN_INLINE void put(T* p, Vf steps) const { store(p, nearest(steps) + zero_); }
  SN_INLINE void put(T* p, Vf steps, int n) const { store_n(p, nearest(steps) + zero_, n); }
  SN_INLINE void put_any(T* p, Vf steps) const { put(p, clamp(steps, set(least_), set(most_))); }
#if SN_VECTORS == SN_LEVEL_avx512
  // Whether values are steps as they are.
  SN_INLINE bool are_steps() const { return per_unit_ == 1; }
  // Four vectors that are no NaN, of which only bounds.hi was done: rows of `panel` of them, `stride` elements apart,
  // with n elements in each row.
  template <int panel>
  SN_INLINE void put_four(T* p, ptrdiff_t stride, int n, const Vf* steps, const ClampBounds& bounds) const {
    constexpr int rows = 4 / panel, last = panel == 3 ? 2 : 3;
    const int least = static_cast<int>(nearest_of(bounds.lo)) + zero_[0];
    const __m512i bytes =
        narrow_four<T>(nearest(steps[0]), nearest(steps[1]), nearest(steps[2]), nearest(steps[last]), zero_[0], least);
    store_four<0, panel>(p, bytes, n);
    if constexpr (rows > 1) store_four<panel, panel>(p + stride, bytes, n);
    if constexpr (rows > 2) store_four<2, 1>(p + 2 * stride, bytes, n), store_four<3, 1>(p + 3 * stride, bytes, n);
  }
#endif

 private:
  static constexpr int lowest = static_cast<T>(-1) < 0 ? -128 : 0, highest = lowest + 255;
  static SN_INLINE float nearest_of(float x) { return __builtin_rintf(x); }
  SN_INLINE float within(float x) const { return x < least_ ? least_ : x > most_ ? most_ : x; }

  float per_unit_, least_, most_;
  Vi zero_;
};

}  // namespace softneuro::SN_ISA
