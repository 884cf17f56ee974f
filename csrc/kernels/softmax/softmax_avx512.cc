#include "kernels/softmax/generic.h"

namespace softneuro {

const SoftmaxKernels softmax_avx512 = avx512::softmax_table;

}  // namespace softneuro
