#include "kernels/reduce/generic.h"

namespace softneuro {

const ReduceKernels reduce_avx2 = avx2::reduce_table;

}  // namespace softneuro
