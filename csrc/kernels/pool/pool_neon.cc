#include "kernels/pool/generic.h"

namespace softneuro {

void pool_lanes_neon(const PoolRow& p) { neon::pool_lanes(p); }
void pool_line_neon(const PoolRow& p) { neon::pool_line(p); }

}  // namespace softneuro
