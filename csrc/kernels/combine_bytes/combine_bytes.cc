#include "kernels/combine_bytes/combine_bytes.h"

#include "kernels/levels.h"

namespace softneuro {

SN_KERNEL_LIST(CombineBytesKernels, combine_bytes, SN_VECTOR_LEVELS)
const CombineBytesKernels* combine_bytes_kernels(Isa isa) { return find_built(combine_bytes_list, isa); }

}  // namespace softneuro
