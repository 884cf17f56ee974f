#include "kernels/repack/generic.h"

namespace softneuro {

void repack_neon(const Repack& p) { neon::repack(p); }

}  // namespace softneuro
