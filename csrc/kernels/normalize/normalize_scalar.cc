#include "kernels/normalize/generic.h"

namespace softneuro {

const NormalizeKernels normalize_scalar = scalar::normalize_table;

}  // namespace softneuro
