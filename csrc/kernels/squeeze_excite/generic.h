// squeeze_excite over Vf; one vector is a pixel of a channel block. Layouts and contract: squeeze_excite.h.
#pragma once

#include "kernels/integers.h"
#include "kernels/squeeze_excite/squeeze_excite.h"
#include "kernels/store/rest.h"
#include "kernels/store/tiles.h"
#include "kernels/unroll.h"

namespace softneuro::SN_ISA {
namespace squeeze_excite {

constexpr int ways = 4;  // sums in flight, so that none waits for its predecessor

SN_INLINE Vf together(const Vf (&sum)[ways]) { return (sum[0] + sum[1]) + (sum[2] + sum[3]); }

// Sum over i < count of x[i] * rows[i].
SN_INLINE Vf weighted_sum(const float* x, const float* rows, int count) {
  Vf sum[ways] = {zero(), zero(), zero(), zero()};
  int i = 0;
  for (; i + ways <= count; i += ways) {
    unroll<ways>([&](auto w) { sum[w] = fma(set(x[i + w]), load(rows + (i + w) * lanes), sum[w]); });
  }
  for (; i < count; ++i) sum[0] = fma(set(x[i]), load(rows + i * lanes), sum[0]);
  return together(sum);
}

// In blocks whose sums are added, so that the error does not grow with the image.
SN_INLINE Vf sum_pixels(const float* src, int pixels) {
  constexpr int block = 128;
  Vf total = zero();
  for (int begin = 0; begin < pixels; begin += block) {
    const int end = pixels - begin < block ? pixels : begin + block;
    Vf sum[ways] = {zero(), zero(), zero(), zero()};
    int i = begin;
    for (; i + ways <= end; i += ways) {
      unroll<ways>([&](auto w) { sum[w] = sum[w] + load(src + static_cast<size_t>(i + w) * lanes); });
    }
    for (; i < end; ++i) sum[0] = sum[0] + load(src + static_cast<size_t>(i) * lanes);
    total = total + together(sum);
  }
  return total;
}

[[gnu::flatten]] inline void squeeze(const SqueezeExciteArgs& a, int block_begin, int block_end, float* scratch,
                                     float* part) {
  const size_t plane = static_cast<size_t>(a.pixels) * lanes;
  const Vf share = set(1.0f / static_cast<float>(a.pixels));
  for (int block = block_begin; block < block_end; ++block) {
    store(scratch + (block - block_begin) * lanes, sum_pixels(a.src + block * plane, a.pixels) * share);
  }
  const int first = block_begin * lanes, last = block_end * lanes < a.channels ? block_end * lanes : a.channels;
  for (int row = 0; row < a.hidden; row += lanes) {
    const float* weights = a.squeeze + (static_cast<size_t>(row) * a.channels + static_cast<size_t>(first) * lanes);
    store(part + row, weighted_sum(scratch, weights, last - first));
  }
}

template <bool residual>
SN_INLINE void scale(const SqueezeExciteArgs& a, const float* src, const float* added, float* dst, Vf gate,
                     int pixels) {
  int i = 0;
  for (; i + ways <= pixels; i += ways) {
    Vf x[ways];
    unroll<ways>([&](auto w) {
      x[w] = load(src + (i + w) * lanes) * gate;
      if constexpr (residual) x[w] = x[w] + Reading<float>().value(added + (i + w) * lanes);
    });
    finish_sums(x, a.epilogue.activation);
    unroll<ways>([&](auto w) { Writing<float>().put(dst + (i + w) * lanes, x[w]); });
  }
  for (; i < pixels; ++i) {
    Vf x[1] = {load(src + i * lanes) * gate};
    if constexpr (residual) x[0] = x[0] + Reading<float>().value(added + i * lanes);
    finish_sums(x, a.epilogue.activation);
    Writing<float>().put(dst + i * lanes, x[0]);
  }
}

[[gnu::flatten]] inline void excite(const SqueezeExciteArgs& a, const float* parts, int count, float* scratch,
                                    int block_begin, int block_end) {
  const int padded = round_up(a.hidden, lanes);
  for (int row = 0; row < padded; row += lanes) {
    Vf sum = load(a.squeeze_bias + row);
    for (int part = 0; part < count; ++part) sum = sum + load(parts + static_cast<size_t>(part) * padded + row);
    store(scratch + row, sum);
  }
  activate_row(scratch, scratch, static_cast<size_t>(padded), a.squeeze_activation);
  const size_t plane = static_cast<size_t>(a.pixels) * lanes;
  const float* residual = a.epilogue.residual.f32();
  constexpr int chunk = 256;  // pixels: what finish_rest passes over again is in the first cache
  for (int block = block_begin; block < block_end; ++block) {
    const int channels = a.channels - block * lanes < lanes ? a.channels - block * lanes : lanes;
    float gates[lanes];
    const float* weights = a.excite + static_cast<size_t>(block) * a.hidden * lanes;
    store(gates, weighted_sum(scratch, weights, a.hidden) + load(a.excite_bias + block * lanes));
    activate_row(gates, gates, lanes, a.excite_activation);
    const Vf gate = load(gates);
    for (int begin = 0; begin < a.pixels; begin += chunk) {
      const int pixels = a.pixels - begin < chunk ? a.pixels - begin : chunk;
      const size_t at = block * plane + static_cast<size_t>(begin) * lanes;
      if (residual != nullptr) {
        scale<true>(a, a.src + at, residual + at, a.dst + at, gate, pixels);
      } else {
        scale<false>(a, a.src + at, nullptr, a.dst + at, gate, pixels);
      }
      finish_rest(a.epilogue.activation, a.dst + at, pixels, channels);
    }
  }
}

}  // namespace squeeze_excite
}  // namespace softneuro::SN_ISA

namespace softneuro {

SN_KERNEL_TABLE(SqueezeExciteKernels, squeeze_excite) = {
    .block = SN_ISA::lanes,
    .squeeze = SN_ISA::squeeze_excite::squeeze,
    .excite = SN_ISA::squeeze_excite::excite,
};

}  // namespace softneuro
