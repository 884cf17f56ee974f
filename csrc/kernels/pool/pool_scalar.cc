#include "kernels/pool/generic.h"

namespace softneuro {

void pool_lanes_scalar(const PoolRow& p) { scalar::pool_lanes(p); }
void pool_line_scalar(const PoolRow& p) { scalar::pool_line(p); }

}  // namespace softneuro
