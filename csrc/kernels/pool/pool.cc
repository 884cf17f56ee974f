#include "kernels/pool/pool.h"

#include "base/arch.h"

namespace softneuro {

PoolKernels pool_kernels(Isa isa) {
#define SN_KERNEL(level) \
  if (isa == Isa::level) return {pool_lanes_##level, pool_line_##level};
#include "kernels/pool/kernels.inc"
#undef SN_KERNEL
  return {};
}

}  // namespace softneuro
