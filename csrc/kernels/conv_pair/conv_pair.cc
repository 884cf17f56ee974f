#include "kernels/conv_pair/conv_pair.h"

#include "kernels/levels.h"

namespace softneuro {

SN_KERNEL_LIST(ConvPairKernels, conv_pair, SN_VECTOR_LEVELS)
const ConvPairKernels* conv_pair_kernels(Isa isa) { return find_kernels(conv_pair_list, isa); }

}  // namespace softneuro
