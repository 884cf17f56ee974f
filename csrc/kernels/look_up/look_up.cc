#include "kernels/look_up/look_up.h"

#include "kernels/levels.h"

namespace softneuro {

SN_KERNEL_LIST(LookUpKernel, look_up, SN_VECTOR_LEVELS)
LookUpKernel look_up_kernel(Isa isa) { return built_or_none(look_up_list, isa); }

}  // namespace softneuro
