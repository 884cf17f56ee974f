#include "kernels/attention/attention.h"

#include "kernels/levels.h"

namespace softneuro {

SN_KERNEL_LIST(AttentionKernels, attention, SN_VECTOR_LEVELS)
const AttentionKernels* attention_kernels(Isa isa) { return find_kernels(attention_list, isa); }

}  // namespace softneuro
