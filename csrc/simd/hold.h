// Keeping a vector in its register, and instructions where they were written.
#pragma once

#include "simd/integers.h"

#if SN_VECTORS == SN_LEVEL_avx512
#define SN_VECTOR_REGISTER "+v"
#elif SN_LEVEL == SN_LEVEL_neon
#define SN_VECTOR_REGISTER "+w"
#else
#define SN_VECTOR_REGISTER "+x"
#endif

namespace softneuro::SN_ISA {

// x, in a register from here on: a compiler that knows where x came from may else read it again for each use. Where a
// vector meets many scalars, these are what an FMA should take from memory: Zen 4 broadcasts to a register every second
// cycle, and within an FMA at no cost.
SN_INLINE Vf hold(Vf x) {
  __asm__("" : SN_VECTOR_REGISTER(x.v));
  return x;
}
// The same, and before all that is held here later: a compiler may else make many terms of a sum before it adds them
// up, and have no registers for them.
SN_INLINE Vi hold_here(Vi x) {
  __asm__ volatile("" : SN_VECTOR_REGISTER(x));
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
