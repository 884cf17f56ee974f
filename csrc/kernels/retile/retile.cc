#include "kernels/retile/retile.h"

#include "kernels/levels.h"

namespace softneuro {

SN_KERNEL_LIST(RetileKernels, retile, SN_VECTOR_LEVELS)
const RetileKernels* retile_kernels(Isa isa) { return find_kernels(retile_list, isa); }

}  // namespace softneuro
