#include "kernels/normalize/normalize.h"

#include "base/error.h"

namespace softneuro {

const NormalizeKernels& normalize_kernels(Isa isa) {
  switch (isa) {
#define SN_KERNEL(level) \
  case Isa::level:       \
    return normalize_##level;
#include "kernels/normalize/kernels.inc"
#undef SN_KERNEL
    default:
      throw Error("no normalization kernels for this level", std::string(isa_name(isa)));
  }
}

}  // namespace softneuro
