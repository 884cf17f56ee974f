// The normalization kernels over Vf; a level's file instantiates the table.
#pragma once

#include "kernels/normalize/normalize.h"
#include "kernels/reduce/accumulate.h"

namespace softneuro::SN_ISA {

inline Moments row_moments(const float* src, int64_t count) {
  const float n = static_cast<float>(count);
  const float mean = sum_row(src, count, [](Vf x, int) { return x; }) / n;
  const Vf center = set(mean);
  const float off = sum_row(src, count, [&](Vf x, int used) {
    const Vf d = x - center;
    return used < lanes ? first_or(d, used, zero()) : d;
  });
  const float squares = sum_row(src, count, [&](Vf x, int used) {
    const Vf d = x - center;
    return used < lanes ? first_or(d * d, used, zero()) : d * d;
  });
  return {mean, off / n, (squares - off * (off / n)) / n};
}

inline void normalize_row(const NormalizeArgs& args) {
  const Vf center = set(args.center), factor = set(args.factor), shift = set(args.shift);
  const auto part = [&](int64_t i, const auto& get) {
    const Vf x = fma(get(args.src + i) - center, factor, shift);
    return args.weight == nullptr ? x : fma(x, get(args.weight + i), get(args.bias + i));
  };
  int64_t i = 0;
  for (; i + lanes <= args.count; i += lanes) {
    store(args.dst + i, part(i, [](const float* p) { return load(p); }));
  }
  if (i < args.count) {
    const int rest = static_cast<int>(args.count - i);
    store_n(args.dst + i, part(i, [rest](const float* p) { return load_n(p, rest); }), rest);
  }
}

}  // namespace softneuro::SN_ISA

namespace softneuro {

SN_KERNEL_TABLE(NormalizeKernels, normalize) = {SN_ISA::row_moments, SN_ISA::normalize_row};

}  // namespace softneuro
