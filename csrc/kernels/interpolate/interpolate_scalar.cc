#include "kernels/interpolate/generic.h"

namespace softneuro {

void interpolate_lanes_scalar(const InterpolateRow& p) { scalar::interpolate_lanes(p); }
void interpolate_line_scalar(const InterpolateRow& p) { scalar::interpolate_line(p); }

}  // namespace softneuro
