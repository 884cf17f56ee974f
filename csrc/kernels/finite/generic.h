#include "kernels/finite/all_finite.h"
#include "kernels/finite/finite.h"

namespace softneuro {

SN_KERNEL_TABLE(FiniteKernel, finite) = SN_ISA::all_finite;

}  // namespace softneuro
