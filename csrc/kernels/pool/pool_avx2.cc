#include "kernels/pool/generic.h"

namespace softneuro {

void pool_lanes_avx2(const PoolRow& p) { avx2::pool_lanes(p); }
void pool_line_avx2(const PoolRow& p) { avx2::pool_line(p); }

}  // namespace softneuro
