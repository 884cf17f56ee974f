#include "kernels/quantize/quantize.h"

#include "kernels/levels.h"

namespace softneuro {

SN_KERNEL_LIST(QuantizeKernels, quantize, SN_VECTOR_LEVELS)
const QuantizeKernels* quantize_kernels(Isa isa) { return find_built(quantize_list, isa); }

}  // namespace softneuro
