#include "kernels/dynamic_rows/dynamic_rows.h"

#include "kernels/levels.h"

namespace softneuro {

SN_KERNEL_LIST(DynamicRowsKernels, dynamic_rows, SN_VECTOR_LEVELS)
const DynamicRowsKernels* dynamic_rows_kernels(Isa isa) { return find_built(dynamic_rows_list, isa); }

}  // namespace softneuro
