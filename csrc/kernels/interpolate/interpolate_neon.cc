#include "kernels/interpolate/generic.h"

namespace softneuro {

void interpolate_lanes_neon(const InterpolateRow& p) { neon::interpolate_lanes(p); }
void interpolate_line_neon(const InterpolateRow& p) { neon::interpolate_line(p); }

}  // namespace softneuro
