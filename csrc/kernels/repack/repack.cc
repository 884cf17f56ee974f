#include "kernels/repack/repack.h"

#include "base/arch.h"

namespace softneuro {

RepackKernel repack_kernel(Isa isa) {
#define SN_KERNEL(level) \
  if (isa == Isa::level) return repack_##level;
#include "kernels/repack/kernels.inc"
#undef SN_KERNEL
  return nullptr;
}

}  // namespace softneuro
