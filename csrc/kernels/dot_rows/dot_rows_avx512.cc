#include "kernels/dot_rows/generic.h"

namespace softneuro {

void dot_rows_avx512(const DotRows& p, int begin, int end) { avx512::dot_rows(p, begin, end); }

}  // namespace softneuro
