// How windows take elements: their vectors, of `width` elements, how two taps become one, and what is stored of all.
#pragma once

#include "kernels/pool/pool.h"
#include "kernels/store/policy.h"
#include "simd/bytes.h"

namespace softneuro::SN_ISA {
namespace pool {

// Numbers, as floats.
template <class T>
struct Numbers {
  using Element = T;
  using Vector = Vf;
  static constexpr int width = lanes;

  static SN_INLINE Vf load(const T* p) { return SN_ISA::load(p); }
  static SN_INLINE Vf load(const T* p, int n) { return load_n(p, n); }
};

template <class T, bool bytes = is_quantized<T>>
struct Maxima : Numbers<T> {
  static SN_INLINE Vf start() { return set(-__builtin_inff()); }
  static SN_INLINE Vf step(Vf acc, Vf x) { return max(acc, x); }

  struct End {
    SN_INLINE End(const PoolRow&, int64_t) {}
    SN_INLINE void put(T* dst, Vf most) const { store(dst, most); }
    SN_INLINE void put(T* dst, Vf most, int n) const { store_n(dst, most, n); }
  };
};
// The greatest byte is that of the greatest value.
template <class T>
struct Maxima<T, true> {
  using Element = T;
  typedef T Vector __attribute__((vector_size(vector_bytes)));
  static constexpr int width = vector_bytes;

  static SN_INLINE const uint8_t* raw(const T* p) { return reinterpret_cast<const uint8_t*>(p); }
  static SN_INLINE Vector load(const T* p) { return (Vector)load_row(raw(p)); }
  static SN_INLINE Vector load(const T* p, int n) { return (Vector)load_row_n(raw(p), n); }
  static SN_INLINE Vector start() { return Vector{} + static_cast<T>(static_cast<T>(-1) < 0 ? -128 : 0); }
  static SN_INLINE Vector step(Vector acc, Vector x) { return acc > x ? acc : x; }

  struct End {
    SN_INLINE End(const PoolRow&, int64_t) {}
    SN_INLINE void put(T* dst, Vector most) const { store_row(reinterpret_cast<uint8_t*>(dst), (Vb)most); }
    SN_INLINE void put(T* dst, Vector most, int n) const { store_row_n(reinterpret_cast<uint8_t*>(dst), (Vb)most, n); }
  };
};

template <class T, bool bytes = is_quantized<T>>
struct Means : Numbers<T> {
  static SN_INLINE Vf start() { return zero(); }
  static SN_INLINE Vf step(Vf acc, Vf x) { return acc + x; }

  struct End {
    Vf scale;
    SN_INLINE End(const PoolRow& p, int64_t x) : scale(set(p.scale[x] * p.row_scale)) {}
    SN_INLINE void put(T* dst, Vf sum) const { store(dst, sum * scale); }
    SN_INLINE void put(T* dst, Vf sum, int n) const { store_n(dst, sum * scale, n); }
  };
};
// Sums of bytes are integers, from which what the zero point adds is taken off.
template <class T>
struct Means<T, true> {
  using Element = T;
  using Vector = Vi;
  static constexpr int width = lanes;

  static SN_INLINE Vi load(const T* p) { return widen(p); }
  static SN_INLINE Vi load(const T* p, int n) { return widen_n(p, n); }
  static SN_INLINE Vi start() { return Vi{}; }
  static SN_INLINE Vi step(Vi acc, Vi x) { return acc + x; }

  struct End {
    Writing<T> writing;
    ClampBounds bounds;
    Vi zeros;
    Vf scale;
    SN_INLINE End(const PoolRow& p, int64_t x)
        : writing(p.formats->to),
          bounds(writing.bounds({})),
          zeros(Vi{} + static_cast<int32_t>(p.formats->from.zero * p.rows * p.spans[x].count)),
          scale(set(p.scale[x] * p.row_scale * p.formats->from.scale)) {}
    SN_INLINE Vf steps(Vi sum) const {
      return clamp(writing.steps(to_float(sum - zeros) * scale), set(bounds.lo), set(bounds.hi));
    }
    SN_INLINE void put(T* dst, Vi sum) const { writing.put(dst, steps(sum)); }
    SN_INLINE void put(T* dst, Vi sum, int n) const { writing.put(dst, steps(sum), n); }
  };
};

template <bool is_max, class T>
struct TapsOf {
  using Type = Means<T>;
};
template <class T>
struct TapsOf<true, T> {
  using Type = Maxima<T>;
};
template <bool is_max, class T>
using Taps = typename TapsOf<is_max, T>::Type;

}  // namespace pool
}  // namespace softneuro::SN_ISA
