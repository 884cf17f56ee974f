#include "kernels/transpose2d/generic.h"

namespace softneuro {

void transpose2d_avx2(const Transpose2d& p) { avx2::transpose2d(p); }

}  // namespace softneuro
