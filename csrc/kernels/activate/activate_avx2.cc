#include "kernels/activate/generic.h"

namespace softneuro {

void activate_avx2(float* dst, const float* src, const float* residual, int64_t count, const Activation& activation) {
  avx2::activate_all(dst, src, residual, count, activation);
}

}  // namespace softneuro
