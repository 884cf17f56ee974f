#include <cmath>
#include <limits>

#include "layers/softmax/softmax.h"

namespace softneuro {

void softmax_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out) {
  const SoftmaxParams params = softmax_params(layer, out.shape);
  const int64_t outer = out.shape.product(0, params.axis), size = out.shape[params.axis];
  const int64_t inner = out.shape.product(params.axis + 1, out.shape.rank());
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < inner; ++i) {
      const int64_t start = o * size * inner + i;
      const double* x = in[0].data + start;
      double* y = out.data + start;
      double most = -std::numeric_limits<double>::infinity(), sum = 0;
      for (int64_t k = 0; k < size; ++k) most = std::fmax(most, x[k * inner]);
      const bool nothing = params.safe && most == -std::numeric_limits<double>::infinity();
      if (nothing) most = 0;
      for (int64_t k = 0; k < size; ++k) sum += std::exp(x[k * inner] - most);
      for (int64_t k = 0; k < size; ++k) {
        const double shifted = x[k * inner] - most;
        y[k * inner] = params.log ? shifted - std::log(sum) : std::exp(shifted) / (nothing ? 1 : sum);
      }
    }
}

}  // namespace softneuro
