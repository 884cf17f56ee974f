#include "kernels/softmax/generic.h"

namespace softneuro {

const SoftmaxKernels softmax_scalar = scalar::softmax_table;

}  // namespace softneuro
