// The normalization kernels over Vf; a level's file instantiates the table.
#pragma once

#include "kernels/normalize/normalize.h"
#include "kernels/reduce/accumulate.h"
#include "kernels/store/visit.h"

namespace softneuro::SN_ISA {

struct Differences {
  float sum, squares;
};

// Sums of x - center and of its squares, as sum_row makes one.
template <class T>
SN_INLINE Differences sum_differences(const T* src, int64_t count, Vf center, const Reading<T>& reading) {
  CompensatedSum sum, squares;
  int64_t i = 0;
  while (i + lanes <= count) {
    const int64_t vectors = (count - i) / lanes, block = vectors < plain_vectors ? vectors : plain_vectors;
    Vf part[4] = {zero(), zero(), zero(), zero()}, square[4] = {zero(), zero(), zero(), zero()};
    const auto add = [&](int j, int64_t k) {
      const Vf difference = reading.value(src + i + k * lanes) - center;
      part[j] = part[j] + difference;
      square[j] = fma(difference, difference, square[j]);
    };
    int64_t k = 0;
    for (; k + 4 <= block; k += 4) {
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) add(j, k + j);
    }
    for (; k < block; ++k) add(0, k);
    sum.add((part[0] + part[1]) + (part[2] + part[3]));
    squares.add((square[0] + square[1]) + (square[2] + square[3]));
    i += block * lanes;
  }
  if (i < count) {
    const int rest = static_cast<int>(count - i);
    const Vf difference = first_or(reading.value(src + i, rest) - center, rest, zero());
    sum.add(difference);
    squares.add(difference * difference);
  }
  return {reduce_add(sum.total), reduce_add(squares.total)};
}

template <class T>
SN_INLINE Moments moments_of(const T* src, int64_t count, const Reading<T>& reading) {
  const auto in_use = [](Vf x, int used) { return used < lanes ? first_or(x, used, zero()) : x; };
  const float n = static_cast<float>(count);
  const auto value = [&](Vf x, int used) { return is_quantized<T> ? in_use(x, used) : x; };
  const float mean = sum_row(src, count, value, reading) / n;
  const auto [off, squares] = sum_differences(src, count, set(mean), reading);
  return {mean, off / n, (squares - off * (off / n)) / n};
}

inline Moments row_moments(const void* src, int64_t count, const ElementFormat& from) {
  Moments moments;
  with_elements(from.type,
                [&]<class T>() { moments = moments_of(static_cast<const T*>(src), count, Reading<T>(from)); });
  return moments;
}

template <class T>
SN_INLINE float mean_square_of(const T* src, int64_t count, const Reading<T>& reading) {
  const auto square = [](Vf x, int used) {
    const Vf product = x * x;
    return is_quantized<T> && used < lanes ? first_or(product, used, zero()) : product;
  };
  return sum_row(src, count, square, reading) / static_cast<float>(count);
}

inline float row_mean_square(const void* src, int64_t count, const ElementFormat& from) {
  float mean = 0;
  with_elements(from.type,
                [&]<class T>() { mean = mean_square_of(static_cast<const T*>(src), count, Reading<T>(from)); });
  return mean;
}

// Parameters are of the elements from number `first` on.
template <bool has_weight, bool has_bias>
SN_INLINE void normalize_part(const NormalizeArgs& args, float* dst, const float* src, int64_t first, int64_t count) {
  const Vf center = set(args.center), factor = set(args.factor), shift = set(args.shift);
  const auto part = [&](int64_t i, const auto& get) {
    const Vf x = fma(get(src + i) - center, factor, shift);
    if constexpr (has_bias) return fma(x, get(args.weight + first + i), get(args.bias + first + i));
    if constexpr (has_weight) return x * get(args.weight + first + i);
    return x;
  };
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    store(dst + i, part(i, [](const float* p) { return load(p); }));
  }
  if (i < count) {
    const int rest = static_cast<int>(count - i);
    store_n(dst + i, part(i, [rest](const float* p) { return load_n(p, rest); }), rest);
  }
}

inline void normalize_floats(const NormalizeArgs& args, float* dst, const float* src, int64_t first, int64_t count) {
  if (args.weight == nullptr) return normalize_part<false, false>(args, dst, src, first, count);
  if (args.bias == nullptr) return normalize_part<true, false>(args, dst, src, first, count);
  normalize_part<true, true>(args, dst, src, first, count);
}

inline void normalize_row(const NormalizeArgs& args) {
  if (args.to.type == DType::float32 && args.from.type == DType::float32) {
    return normalize_floats(args, static_cast<float*>(args.dst), static_cast<const float*>(args.src), 0, args.count);
  }
  alignas(64) float values[buffered];
  for (int64_t i = 0; i < args.count; i += buffered) {
    const int64_t n = args.count - i < buffered ? args.count - i : buffered;
    read_values(args.from, args.src, i, n, values);
    normalize_floats(args, values, values, i, n);
    write_values(args.to, values, args.dst, i, n);
  }
}

}  // namespace softneuro::SN_ISA

namespace softneuro {

SN_KERNEL_TABLE(NormalizeKernels, normalize) = {SN_ISA::row_moments, SN_ISA::row_mean_square, SN_ISA::normalize_row};

}  // namespace softneuro
