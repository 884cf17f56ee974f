#include "kernels/transpose2d/generic.h"

namespace softneuro {

void transpose2d_avx512(const Transpose2d& p) { avx512::transpose2d(p); }

}  // namespace softneuro
