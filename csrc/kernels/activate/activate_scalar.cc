#include "kernels/activate/generic.h"

namespace softneuro {

void activate_scalar(float* dst, const float* src, const float* residual, int64_t count, const Activation& activation) {
  scalar::activate_all(dst, src, residual, count, activation);
}

}  // namespace softneuro
