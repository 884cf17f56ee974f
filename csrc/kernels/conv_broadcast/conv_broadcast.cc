#include "kernels/conv_broadcast/conv_broadcast.h"

#include "kernels/levels.h"

namespace softneuro {

SN_KERNEL_LIST(ConvBroadcastKernels, conv_broadcast, SN_VECTOR_LEVELS)
const ConvBroadcastKernels* conv_broadcast_kernels(Isa isa) { return find_kernels(conv_broadcast_list, isa); }

}  // namespace softneuro
