#include "kernels/decode_rows/decode_rows.h"

#include "kernels/levels.h"

namespace softneuro {

SN_KERNEL_LIST(DecodeRowsKernel, decode_rows, SN_VECTOR_LEVELS)
DecodeRowsKernel decode_rows_kernel(Isa isa) { return built_or_none(decode_rows_list, isa); }

}  // namespace softneuro
