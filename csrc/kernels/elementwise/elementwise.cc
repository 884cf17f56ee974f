#include "kernels/elementwise/elementwise.h"

#include "kernels/levels.h"

namespace softneuro {

SN_KERNEL_LIST(ElementwiseTable, elementwise, SN_VECTOR_LEVELS)

ElementwiseKernel elementwise_kernel(Isa isa, ElementwiseOp op, Access a, Access b) {
  const int access = a == Access::full ? static_cast<int>(b) : 2 + static_cast<int>(a);
  return need_built(elementwise_list, isa, "element-wise")[static_cast<int>(op)][access];
}

}  // namespace softneuro
