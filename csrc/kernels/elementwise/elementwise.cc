#include "kernels/elementwise/elementwise.h"

#include "base/error.h"

namespace softneuro {

ElementwiseKernel elementwise_kernel(Isa isa, ElementwiseOp op, Access a, Access b) {
  const int access = a == Access::full ? static_cast<int>(b) : 2 + static_cast<int>(a);
  const auto row = static_cast<int>(op);
  switch (isa) {
#define SN_KERNEL(level) \
  case Isa::level:       \
    return elementwise_##level[row][access];
#include "kernels/elementwise/kernels.inc"
#undef SN_KERNEL
    default:
      throw Error("no element-wise kernels for this level", std::string(isa_name(isa)));
  }
}

}  // namespace softneuro
