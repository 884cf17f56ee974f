#include "kernels/normalize/generic.h"

namespace softneuro {

const NormalizeKernels normalize_avx2 = avx2::normalize_table;

}  // namespace softneuro
