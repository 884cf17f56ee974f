// Products of weights with more vectors than there are registers for.
#pragma once

#include "kernels/epilogue.h"
#include "kernels/integers.h"
#include "simd/simd.h"

namespace softneuro::SN_ISA {

// Calls run(p, begin, end) for [begin, end), or for `block` of it after the other, whose weights stay in L2, with at
// most `most` of the vectors at a time.
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
