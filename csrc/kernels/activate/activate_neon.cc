#include "kernels/activate/generic.h"

namespace softneuro {

void activate_neon(float* dst, const float* src, const float* residual, int64_t count, const Activation& activation) {
  neon::activate_all(dst, src, residual, count, activation);
}

}  // namespace softneuro
