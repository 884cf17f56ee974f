#include "kernels/peak/peak.h"

namespace softneuro {

#define SN_KERNELS(isa) extern const PeakKernels peak_##isa;
#include "kernels/peak/kernels.inc"
#undef SN_KERNELS

const PeakKernels* peak_kernels(Isa isa) {
  if (!isa_available(isa)) return nullptr;
#define SN_KERNELS(level) \
  if (isa == Isa::level) return &peak_##level;
#include "kernels/peak/kernels.inc"
#undef SN_KERNELS
  return nullptr;
}

}  // namespace softneuro
