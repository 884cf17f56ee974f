#include "kernels/peak/peak.h"

#include "kernels/levels.h"

namespace softneuro {

SN_KERNEL_LIST(PeakKernels, peak, SN_VECTOR_LEVELS)
const PeakKernels* peak_kernels(Isa isa) { return find_kernels(peak_list, isa); }

}  // namespace softneuro
