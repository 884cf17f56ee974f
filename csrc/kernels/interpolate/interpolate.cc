#include "kernels/interpolate/interpolate.h"

#include "kernels/levels.h"

namespace softneuro {

SN_KERNEL_LIST(InterpolateKernels, interpolate, SN_VECTOR_LEVELS)
InterpolateKernels interpolate_kernels(Isa isa) { return built_or_none(interpolate_list, isa); }

}  // namespace softneuro
