// Rows of rotary position embedding over Vf. Contract: rotary.h.
#pragma once

#include "kernels/rotary/rotary.h"
#include "simd/simd.h"

namespace softneuro::SN_ISA {

inline void turn_row(const RotaryArgs& a) {
  for (int64_t i = 0; i < a.half; i += lanes) {
    const int n = a.half - i < lanes ? static_cast<int>(a.half - i) : lanes;
    const Vf first = load_n(a.x + i, n), second = load_n(a.x + a.half + i, n);
    store_n(a.dst + i, fnma(second, load_n(a.sine + i, n), first * load_n(a.cosine + i, n)), n);
    const Vf other = second * load_n(a.cosine + a.half + i, n);
    store_n(a.dst + a.half + i, fma(first, load_n(a.sine + a.half + i, n), other), n);
  }
}

}  // namespace softneuro::SN_ISA

namespace softneuro {

SN_KERNEL_TABLE(RotaryKernel, rotary) = SN_ISA::turn_row;

}  // namespace softneuro
