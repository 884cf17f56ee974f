// What the machine can do at most: chains of multiply-adds in registers, and plain walks over memory.
#pragma once

#include <cstdint>

#include "base/arch.h"

namespace softneuro {

struct PeakKernels {
  int64_t fma_flops;  // floating-point operations of one round of fma
  int64_t granule;    // floats: counts of the walks are multiples of it
  // Independent multiply-adds, enough to keep every unit busy; the result only keeps the compiler from dropping them.
  float (*fma)(int64_t rounds);
  float (*read)(const float* src, int64_t count);  // the sum, likewise
  void (*write)(float* dst, int64_t count);
  void (*stream)(float* dst, int64_t count);  // past the caches; dst is 64-byte aligned
};

// Null where this build or machine lacks the level.
const PeakKernels* peak_kernels(Isa isa);

}  // namespace softneuro
