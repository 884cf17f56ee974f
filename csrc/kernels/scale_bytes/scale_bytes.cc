#include "kernels/scale_bytes/scale_bytes.h"

#include "kernels/levels.h"

namespace softneuro {

SN_KERNEL_LIST(ScaleBytesKernel, scale_bytes, SN_VECTOR_LEVELS)
ScaleBytesKernel scale_bytes_kernel(Isa isa) { return built_or_none(scale_bytes_list, isa); }

}  // namespace softneuro
