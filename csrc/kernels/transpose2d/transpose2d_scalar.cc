#include "kernels/transpose2d/generic.h"

namespace softneuro {

void transpose2d_scalar(const Transpose2d& p) { scalar::transpose2d(p); }

}  // namespace softneuro
