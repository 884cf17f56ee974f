#include "kernels/normalize/generic.h"

namespace softneuro {

const NormalizeKernels normalize_neon = neon::normalize_table;

}  // namespace softneuro
