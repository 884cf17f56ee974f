#include <cmath>

#include "layers/weights/weights_check.h"

namespace softneuro {

void batch_norm_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out) {
  const auto size = static_cast<size_t>(out.shape[1]);
  const double eps = epsilon(layer);
  const std::vector<double> mean = reference_weight(layer, "mean"), variance = reference_weight(layer, "variance");
  std::vector<double> weight(size, 1.0), bias(size, 0.0);
  if (layer.find_weight("weight") != nullptr) weight = reference_weight(layer, "weight");
  if (layer.find_weight("bias") != nullptr) bias = reference_weight(layer, "bias");
  const int64_t plane = out.shape.product(2, out.shape.rank()), count = out.shape.elements();
  for (int64_t i = 0; i < count; ++i) {
    const auto c = static_cast<size_t>(i / plane % out.shape[1]);
    out.data[i] = (in[0].data[i] - mean[c]) / std::sqrt(variance[c] + eps) * weight[c] + bias[c];
  }
}

}  // namespace softneuro
