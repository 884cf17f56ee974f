#include "kernels/reduce/generic.h"

namespace softneuro {

const ReduceKernels reduce_avx512 = avx512::reduce_table;

}  // namespace softneuro
