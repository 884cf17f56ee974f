#include "kernels/dot_rows/generic.h"

namespace softneuro {

void dot_rows_scalar(const DotRows& p, int begin, int end) { scalar::dot_rows(p, begin, end); }

}  // namespace softneuro
