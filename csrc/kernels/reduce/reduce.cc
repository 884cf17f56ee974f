#include "kernels/reduce/reduce.h"

#include "kernels/levels.h"

namespace softneuro {

SN_KERNEL_LIST(ReduceKernels, reduce, SN_VECTOR_LEVELS)
const ReduceKernels& reduce_kernels(Isa isa) { return need_built(reduce_list, isa, "reduction"); }

}  // namespace softneuro
