#include "kernels/dot_rows/dot_rows.h"

#include "kernels/levels.h"

namespace softneuro {

SN_KERNEL_LIST(DotRowsKernel, dot_rows, SN_VECTOR_LEVELS)
DotRowsKernel dot_rows_kernel(Isa isa) { return built_or_none(dot_rows_list, isa); }

}  // namespace softneuro
