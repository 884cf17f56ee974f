#include "kernels/transpose2d/generic.h"

namespace softneuro {

void transpose2d_neon(const Transpose2d& p) { neon::transpose2d(p); }

}  // namespace softneuro
