#include "kernels/transpose2d/transpose2d.h"

#include "kernels/levels.h"

namespace softneuro {

SN_KERNEL_LIST(Transpose2dKernel, transpose2d, SN_VECTOR_LEVELS)
Transpose2dKernel transpose2d_kernel(Isa isa) { return built_or_none(transpose2d_list, isa); }

}  // namespace softneuro
