#include "kernels/sum_rows/sum_rows.h"

#include "kernels/levels.h"

namespace softneuro {

SN_KERNEL_LIST(SumRowsKernel, sum_rows, SN_VECTOR_LEVELS)
SumRowsKernel sum_rows_kernel(Isa isa) { return built_or_none(sum_rows_list, isa); }

}  // namespace softneuro
