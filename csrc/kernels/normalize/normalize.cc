#include "kernels/normalize/normalize.h"

#include "kernels/levels.h"

namespace softneuro {

SN_KERNEL_LIST(NormalizeKernels, normalize, SN_VECTOR_LEVELS)
const NormalizeKernels& normalize_kernels(Isa isa) { return need_built(normalize_list, isa, "normalization"); }

}  // namespace softneuro
