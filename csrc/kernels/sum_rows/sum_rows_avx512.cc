#include "kernels/sum_rows/generic.h"

namespace softneuro {

void sum_rows_avx512(const SumRows& p) { avx512::sum_rows(p); }

}  // namespace softneuro
