#include "kernels/sum_rows/sum_rows.h"

#include "base/arch.h"

namespace softneuro {

SumRowsKernel sum_rows_kernel(Isa isa) {
#define SN_KERNEL(level) \
  if (isa == Isa::level) return sum_rows_##level;
#include "kernels/sum_rows/kernels.inc"
#undef SN_KERNEL
  return nullptr;
}

}  // namespace softneuro
