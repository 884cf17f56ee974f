#include "kernels/reduce/generic.h"

namespace softneuro {

const ReduceKernels reduce_scalar = scalar::reduce_table;

}  // namespace softneuro
