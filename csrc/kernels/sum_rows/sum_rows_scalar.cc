#include "kernels/sum_rows/generic.h"

namespace softneuro {

void sum_rows_scalar(const SumRows& p) { scalar::sum_rows(p); }

}  // namespace softneuro
