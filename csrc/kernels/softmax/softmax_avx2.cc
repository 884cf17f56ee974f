#include "kernels/softmax/generic.h"

namespace softneuro {

const SoftmaxKernels softmax_avx2 = avx2::softmax_table;

}  // namespace softneuro
