#include "kernels/dot_rows/generic.h"

namespace softneuro {

void dot_rows_avx2(const DotRows& p, int begin, int end) { avx2::dot_rows(p, begin, end); }

}  // namespace softneuro
