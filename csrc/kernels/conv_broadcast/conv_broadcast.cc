#include "kernels/conv_broadcast/conv_broadcast.h"

namespace softneuro {

#define SN_KERNELS(isa) extern const ConvBroadcastKernels conv_broadcast_##isa;
#include "kernels/conv_broadcast/kernels.inc"
#undef SN_KERNELS

const ConvBroadcastKernels* conv_broadcast_kernels(Isa isa) {
  if (!isa_available(isa)) return nullptr;
#define SN_KERNELS(level) \
  if (isa == Isa::level) return &conv_broadcast_##level;
#include "kernels/conv_broadcast/kernels.inc"
#undef SN_KERNELS
  return nullptr;
}

}  // namespace softneuro
