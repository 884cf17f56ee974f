#include "kernels/interpolate/generic.h"

namespace softneuro {

void interpolate_lanes_avx2(const InterpolateRow& p) { avx2::interpolate_lanes(p); }
void interpolate_line_avx2(const InterpolateRow& p) { avx2::interpolate_line(p); }

}  // namespace softneuro
