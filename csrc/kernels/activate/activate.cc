#include "kernels/activate/activate.h"

#include "base/error.h"

namespace softneuro {

ActivateKernel activate_kernel(Isa isa) {
  switch (isa) {
#define SN_KERNEL(level) \
  case Isa::level:       \
    return activate_##level;
#include "kernels/activate/kernels.inc"
#undef SN_KERNEL
    default:
      throw Error("no activation kernels for this level", std::string(isa_name(isa)));
  }
}

}  // namespace softneuro
