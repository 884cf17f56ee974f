#include "layers/conv_transpose2d/conv_transpose2d.h"

#include <algorithm>

namespace softneuro {

void conv_transpose2d_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out) {
  const ConvTranspose2dParams p = conv_transpose2d_params(layer, {in[0].shape});
  const std::vector<double> weight = reference_weight(layer, "weight");
  std::vector<double> bias(static_cast<size_t>(p.k), 0.0);
  if (layer.find_weight("bias") != nullptr) bias = reference_weight(layer, "bias");

  for (int64_t n = 0; n < p.n; ++n)
    for (int64_t k = 0; k < p.k; ++k) {
      double* plane = out.data + (n * p.k + k) * p.oh * p.ow;
      std::fill(plane, plane + p.oh * p.ow, bias[static_cast<size_t>(k)]);
      const int64_t group = k / p.group_k();
      for (int64_t c = group * p.group_c(); c < (group + 1) * p.group_c(); ++c) {
        const double* src = in[0].data + (n * p.c + c) * p.h * p.w;
        const double* taps = weight.data() + (c * p.group_k() + k % p.group_k()) * p.kh * p.kw;
        for (int64_t y = 0; y < p.h; ++y)
          for (int64_t x = 0; x < p.w; ++x)
            for (int64_t ky = 0; ky < p.kh; ++ky)
              for (int64_t kx = 0; kx < p.kw; ++kx) {
                const int64_t oy = y * p.sh + ky * p.dh - p.ph, ox = x * p.sw + kx * p.dw - p.pw;
                if (oy >= 0 && oy < p.oh && ox >= 0 && ox < p.ow)
                  plane[oy * p.ow + ox] += src[y * p.w + x] * taps[ky * p.kw + kx];
              }
      }
    }
}

}  // namespace softneuro
