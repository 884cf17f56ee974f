#include "kernels/repack/generic.h"

namespace softneuro {

void repack_scalar(const Repack& p) { scalar::repack(p); }

}  // namespace softneuro
