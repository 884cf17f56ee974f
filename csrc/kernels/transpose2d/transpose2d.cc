#include "kernels/transpose2d/transpose2d.h"

#include "base/arch.h"

namespace softneuro {

Transpose2dKernel transpose2d_kernel(Isa isa) {
#define SN_KERNEL(level) \
  if (isa == Isa::level) return transpose2d_##level;
#include "kernels/transpose2d/kernels.inc"
#undef SN_KERNEL
  return nullptr;
}

}  // namespace softneuro
