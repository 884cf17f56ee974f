#include "layers/rotary/rotary.h"

namespace softneuro {

void rotary_reference(const Layer&, std::span<const RefTensor> in, RefTensor out) {
  const Shape& x = in[0].shape;
  const auto row_of = [&](const RefTensor& angle, const int64_t (&index)[3]) {
    int64_t at = 0;
    for (int axis = 0; axis < 3; ++axis) {
      at = at * angle.shape[axis] + (angle.shape[axis] == 1 ? 0 : index[axis]);
    }
    return angle.data + at * x[3];
  };
  const int64_t half = x[3] / 2;
  double *dst = out.data, *src = in[0].data;
  for (int64_t row = 0; row < x.product(0, 3); ++row, dst += x[3], src += x[3]) {
    const int64_t index[3] = {row / (x[1] * x[2]), row / x[2] % x[1], row % x[2]};
    const double *cosine = row_of(in[1], index), *sine = row_of(in[2], index);
    for (int64_t i = 0; i < x[3]; ++i) {
      const double turned = i < half ? -src[i + half] : src[i - half];
      dst[i] = src[i] * cosine[i] + turned * sine[i];
    }
  }
}

}  // namespace softneuro
