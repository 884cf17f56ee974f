#include "kernels/reduce/reduce.h"

#include "base/error.h"

namespace softneuro {

const ReduceKernels& reduce_kernels(Isa isa) {
  switch (isa) {
#define SN_KERNEL(level) \
  case Isa::level:       \
    return reduce_##level;
#include "kernels/reduce/kernels.inc"
#undef SN_KERNEL
    default:
      throw Error("no reduction kernels for this level", std::string(isa_name(isa)));
  }
}

}  // namespace softneuro
