#include "kernels/softmax/softmax.h"

#include "base/error.h"

namespace softneuro {

const SoftmaxKernels& softmax_kernels(Isa isa) {
  switch (isa) {
#define SN_KERNEL(level) \
  case Isa::level:       \
    return softmax_##level;
#include "kernels/softmax/kernels.inc"
#undef SN_KERNEL
    default:
      throw Error("no softmax kernels for this level", std::string(isa_name(isa)));
  }
}

}  // namespace softneuro
