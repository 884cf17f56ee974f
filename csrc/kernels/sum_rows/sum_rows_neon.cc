#include "kernels/sum_rows/generic.h"

namespace softneuro {

void sum_rows_neon(const SumRows& p) { neon::sum_rows(p); }

}  // namespace softneuro
