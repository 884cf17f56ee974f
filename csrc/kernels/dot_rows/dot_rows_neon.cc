#include "kernels/dot_rows/generic.h"

namespace softneuro {

void dot_rows_neon(const DotRows& p, int begin, int end) { neon::dot_rows(p, begin, end); }

}  // namespace softneuro
