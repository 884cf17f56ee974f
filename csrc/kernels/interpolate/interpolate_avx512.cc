#include "kernels/interpolate/generic.h"

namespace softneuro {

void interpolate_lanes_avx512(const InterpolateRow& p) { avx512::interpolate_lanes(p); }
void interpolate_line_avx512(const InterpolateRow& p) { avx512::interpolate_line(p); }

}  // namespace softneuro
