#include "kernels/rotary/rotary.h"

#include "kernels/levels.h"

namespace softneuro {

SN_KERNEL_LIST(RotaryKernel, rotary, SN_VECTOR_LEVELS)
RotaryKernel rotary_kernel(Isa isa) { return need_built(rotary_list, isa, "rotary"); }

}  // namespace softneuro
