#include "kernels/conv_sparse/conv_sparse.h"

#include "kernels/levels.h"

namespace softneuro {

SN_KERNEL_LIST(ConvSparseKernels, conv_sparse, SN_VECTOR_LEVELS)
const ConvSparseKernels* conv_sparse_kernels(Isa isa) { return find_kernels(conv_sparse_list, isa); }

}  // namespace softneuro
