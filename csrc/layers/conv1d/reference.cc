#include "layers/conv1d/conv1d.h"
#include "layers/conv2d/conv2d.h"

namespace softneuro {

void conv1d_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out) {
  const Conv2dParams p = conv2d_params(conv1d_as_conv2d(layer), {with_height_one(in[0].shape)});
  const std::vector<double> weight = reference_weight(layer, "weight");
  std::vector<double> bias(static_cast<size_t>(p.k), 0.0);
  if (layer.find_weight("bias") != nullptr) bias = reference_weight(layer, "bias");

  double* dst = out.data;
  for (int64_t n = 0; n < p.n; ++n)
    for (int64_t k = 0; k < p.k; ++k)
      for (int64_t ox = 0; ox < p.ow; ++ox) {
        double sum = bias[static_cast<size_t>(k)];
        for (int64_t c = 0; c < p.group_c(); ++c) {
          const double* row = in[0].data + (n * p.c + k / p.group_k() * p.group_c() + c) * p.w;
          const double* taps = weight.data() + (k * p.group_c() + c) * p.kw;
          for (int64_t kx = 0; kx < p.kw; ++kx) {
            const int64_t x = ox * p.sw + kx * p.dw - p.pl;
            if (x >= 0 && x < p.w) sum += row[x] * taps[kx];
          }
        }
        *dst++ = sum;
      }
}

}  // namespace softneuro
