// Keeping a vector in its register, and instructions where they were written.
#pragma once

#include "simd/simd.h"

namespace softneuro::SN_ISA {

// x, in a register from here on: a compiler that knows where x came from may else read it again for each use. Where a
// vector meets many scalars, these are what an FMA should take from memory: Zen 4 broadcasts to a register every second
// cycle, and within an FMA at no cost.
SN_INLINE Vf hold(Vf x) {
#if SN_VECTORS == SN_LEVEL_avx512
  __asm__("" : "+v"(x.v));
#elif SN_LEVEL == SN_LEVEL_neon
  __asm__("" : "+w"(x.v));
#else
  __asm__("" : "+x"(x.v));
#endif
  return x;
}

// A pointer, in a register from here on: what is read at constant distances from it is then not addressed from further
// away.
template <class T>
SN_INLINE T* hold(T* p) {
  __asm__("" : "+r"(p));
  return p;
}

// Prefetches stay on their side of this: schedulers gather those of a whole loop body at its top.
SN_INLINE void in_order() { __asm__ volatile(""); }

}  // namespace softneuro::SN_ISA
