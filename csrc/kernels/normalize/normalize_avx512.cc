#include "kernels/normalize/generic.h"

namespace softneuro {

const NormalizeKernels normalize_avx512 = avx512::normalize_table;

}  // namespace softneuro
