#include "kernels/repack/generic.h"

namespace softneuro {

void repack_avx2(const Repack& p) { avx2::repack(p); }

}  // namespace softneuro
