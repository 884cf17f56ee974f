#include "kernels/pool/pool.h"

#include "kernels/levels.h"

namespace softneuro {

SN_KERNEL_LIST(PoolKernels, pool, SN_VECTOR_LEVELS)
PoolKernels pool_kernels(Isa isa) { return built_or_none(pool_list, isa); }

}  // namespace softneuro
