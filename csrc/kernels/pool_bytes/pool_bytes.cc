#include "kernels/pool_bytes/pool_bytes.h"

#include "kernels/levels.h"

namespace softneuro {

SN_KERNEL_LIST(PoolBytesKernel, pool_bytes, SN_VECTOR_LEVELS)
PoolBytesKernel pool_bytes_kernel(Isa isa) { return built_or_none(pool_bytes_list, isa); }

}  // namespace softneuro
