#include "kernels/repack/generic.h"

namespace softneuro {

void repack_avx512(const Repack& p) { avx512::repack(p); }

}  // namespace softneuro
