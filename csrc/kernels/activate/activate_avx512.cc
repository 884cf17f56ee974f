#include "kernels/activate/generic.h"

namespace softneuro {

void activate_avx512(float* dst, const float* src, const float* residual, int64_t count, const Activation& activation) {
  avx512::activate_all(dst, src, residual, count, activation);
}

}  // namespace softneuro
