#include "layers/conv2d/conv2d.h"

namespace softneuro {

void conv2d_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out) {
  const Conv2dParams p = conv2d_params(layer, {in[0].shape});
  const std::vector<double> weight = reference_weight(layer, "weight");
  std::vector<double> bias(static_cast<size_t>(p.k), 0.0);
  if (layer.find_weight("bias") != nullptr) bias = reference_weight(layer, "bias");

  double* dst = out.data;
  for (int64_t n = 0; n < p.n; ++n)
    for (int64_t k = 0; k < p.k; ++k)
      for (int64_t oy = 0; oy < p.oh; ++oy)
        for (int64_t ox = 0; ox < p.ow; ++ox) {
          double sum = bias[static_cast<size_t>(k)];
          for (int64_t c = 0; c < p.group_c(); ++c) {
            const double* plane = in[0].data + (n * p.c + k / p.group_k() * p.group_c() + c) * p.h * p.w;
            const double* taps = weight.data() + (k * p.group_c() + c) * p.kh * p.kw;
            for (int64_t ky = 0; ky < p.kh; ++ky)
              for (int64_t kx = 0; kx < p.kw; ++kx) {
                const int64_t y = oy * p.sh + ky * p.dh - p.pt, x = ox * p.sw + kx * p.dw - p.pl;
                if (y >= 0 && y < p.h && x >= 0 && x < p.w) sum += plane[y * p.w + x] * taps[ky * p.kw + kx];
              }
          }
          *dst++ = sum;
        }
}

}  // namespace softneuro
