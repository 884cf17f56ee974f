#include "kernels/repack/repack.h"

#include "kernels/levels.h"

namespace softneuro {

SN_KERNEL_LIST(RepackKernel, repack, SN_VECTOR_LEVELS)
RepackKernel repack_kernel(Isa isa) { return built_or_none(repack_list, isa); }

}  // namespace softneuro
