#include "kernels/dot_rows/dot_rows.h"

#include "base/arch.h"

namespace softneuro {

DotRowsKernel dot_rows_kernel(Isa isa) {
#define SN_KERNEL(level) \
  if (isa == Isa::level) return dot_rows_##level;
#include "kernels/dot_rows/kernels.inc"
#undef SN_KERNEL
  return nullptr;
}

}  // namespace softneuro
