#include "kernels/sum_rows/generic.h"

namespace softneuro {

void sum_rows_avx2(const SumRows& p) { avx2::sum_rows(p); }

}  // namespace softneuro
