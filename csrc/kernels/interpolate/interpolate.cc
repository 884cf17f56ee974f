#include "kernels/interpolate/interpolate.h"

#include "base/arch.h"

namespace softneuro {

InterpolateKernels interpolate_kernels(Isa isa) {
#define SN_KERNEL(level) \
  if (isa == Isa::level) return {interpolate_lanes_##level, interpolate_line_##level};
#include "kernels/interpolate/kernels.inc"
#undef SN_KERNEL
  return {};
}

}  // namespace softneuro
