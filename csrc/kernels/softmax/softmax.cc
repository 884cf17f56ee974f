#include "kernels/softmax/softmax.h"

#include "kernels/levels.h"

namespace softneuro {

SN_KERNEL_LIST(SoftmaxKernels, softmax, SN_VECTOR_LEVELS)
const SoftmaxKernels& softmax_kernels(Isa isa) { return need_built(softmax_list, isa, "softmax"); }

}  // namespace softneuro
