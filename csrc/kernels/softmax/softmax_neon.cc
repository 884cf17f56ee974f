#include "kernels/softmax/generic.h"

namespace softneuro {

const SoftmaxKernels softmax_neon = neon::softmax_table;

}  // namespace softneuro
