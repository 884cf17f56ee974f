// What products of weights with a few vectors share.
#pragma once

#include "kernels/epilogue.h"
#include "kernels/integers.h"
#include "kernels/store/policy.h"
#include "kernels/store/rest.h"

namespace softneuro::SN_ISA {

// Finishes sums to the outputs of panel n, a vector of outputs of each of the vectors.
template <int vectors, class Dot>
SN_INLINE void finish_panel(const Dot& p, const ClampBounds& bounds, int n, const Vf* sums) {
  const int at = n * lanes, count = p.n - at < lanes ? p.n - at : lanes;
  const float* residual = p.epilogue.residual.f32();
  for (int i = 0; i < vectors; ++i) {
    Vf sum = sums[i];
    if (p.epilogue.bias != nullptr) sum = sum + load_n(p.epilogue.bias + at, count);
    if (residual != nullptr) sum = sum + Reading<float>().value(residual + i * p.dst_stride + at, count);
    Writing<float>().put(p.dst + i * p.dst_stride + at, clamp(sum, set(bounds.lo), set(bounds.hi)), count);
  }
}

// Likewise of row n of the weights alone, a sum of each of the vectors.
template <int vectors, class Dot>
SN_INLINE void finish_row(const Dot& p, const ClampBounds& bounds, int n, const float (&sums)[vectors]) {
  const float* residual = p.epilogue.residual.f32();
  for (int i = 0; i < vectors; ++i) {
    float sum = sums[i];
    if (p.epilogue.bias != nullptr) sum += p.epilogue.bias[n];
    if (residual != nullptr) sum += residual[i * p.dst_stride + n];
    Writing<float>().put(p.dst + i * p.dst_stride + n, clamp(set(sum), set(bounds.lo), set(bounds.hi)), 1);
  }
}

// Activates outputs [begin, end), unless finish_panel or finish_row has done so by a clamp.
template <class Dot>
SN_INLINE void activate_outputs(const Dot& p, int begin, int end) {
  if (is_clamp(p.epilogue.activation.kind)) return;
  for (int i = 0; i < p.vectors; ++i) {
    float* const row = p.dst + i * p.dst_stride + begin;
    activate_row(row, row, static_cast<size_t>(end - begin), p.epilogue.activation);
  }
}
template <class Dot>
SN_INLINE void activate_panels(const Dot& p, int begin, int end) {
  activate_outputs(p, begin * lanes, end * lanes < p.n ? end * lanes : p.n);
}

// Calls run(p, begin, end) for [begin, end). With more vectors than there are registers for, at most `most` at a time,
// and for `block` of it after the other, whose weights stay in L2.
template <class Dot, class Run>
SN_INLINE void in_groups(const Dot& p, int most, int block, int begin, int end, const Run& run) {
  if (p.vectors <= most) return run(p, begin, end);
  const int groups = ceil_div(p.vectors, most);
  for (int n = begin; n < end; n += block) {
    for (int group = 0; group < groups; ++group) {
      const int first = group * p.vectors / groups;
      Dot part = p;
      part.vectors = (group + 1) * p.vectors / groups - first;
      part.fetch = p.fetch && group == 0;
      part.x += first * p.x_stride;
      part.dst += first * p.dst_stride;
      part.epilogue = p.epilogue.from(0, static_cast<size_t>(first) * static_cast<size_t>(p.dst_stride));
      run(part, n, n + block < end ? n + block : end);
    }
  }
}

}  // namespace softneuro::SN_ISA
