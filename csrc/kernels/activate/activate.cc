#include "kernels/activate/activate.h"

#include "kernels/levels.h"

namespace softneuro {

SN_KERNEL_LIST(ActivateKernel, activate, SN_VECTOR_LEVELS)
ActivateKernel activate_kernel(Isa isa) { return need_built(activate_list, isa, "activation"); }

}  // namespace softneuro
