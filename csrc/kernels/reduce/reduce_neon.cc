#include "kernels/reduce/generic.h"

namespace softneuro {

const ReduceKernels reduce_neon = neon::reduce_table;

}  // namespace softneuro
