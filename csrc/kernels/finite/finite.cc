#include "kernels/finite/finite.h"

#include "kernels/levels.h"

namespace softneuro {

SN_KERNEL_LIST(FiniteKernel, finite, SN_VECTOR_LEVELS)
FiniteKernel finite_kernel(Isa isa) { return built_or_none(finite_list, isa); }

}  // namespace softneuro
