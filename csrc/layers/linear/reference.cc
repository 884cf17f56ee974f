#include "layers/linear/linear.h"

namespace softneuro {

void linear_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out) {
  const LinearParams p = linear_params(layer, {in[0].shape});
  const std::vector<double> weight = reference_weight(layer, "weight");
  std::vector<double> bias(static_cast<size_t>(p.k), 0.0);
  if (layer.find_weight("bias") != nullptr) bias = reference_weight(layer, "bias");
  for (int64_t row = 0; row < p.rows; ++row)
    for (int64_t k = 0; k < p.k; ++k) {
      double sum = bias[static_cast<size_t>(k)];
      for (int64_t c = 0; c < p.c; ++c) sum += in[0].data[row * p.c + c] * weight[static_cast<size_t>(k * p.c + c)];
      out.data[row * p.k + k] = sum;
    }
}

}  // namespace softneuro
