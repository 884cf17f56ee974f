#include "kernels/pool/generic.h"

namespace softneuro {

void pool_lanes_avx512(const PoolRow& p) { avx512::pool_lanes(p); }
void pool_line_avx512(const PoolRow& p) { avx512::pool_line(p); }

}  // namespace softneuro
