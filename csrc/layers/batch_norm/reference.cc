#include <cmath>

#include "layers/scale_shift/channels.h"
#include "layers/weights/weights_check.h"

namespace softneuro {

void batch_norm_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out) {
  const auto size = static_cast<size_t>(out.shape[1]);
  const double eps = epsilon(layer);
  const std::vector<double> mean = reference_weight(layer, "mean"), variance = reference_weight(layer, "variance");
  std::vector<double> weight(size, 1.0), bias(size, 0.0);
  if (layer.find_weight("weight") != nullptr) weight = reference_weight(layer, "weight");
  if (layer.find_weight("bias") != nullptr) bias = reference_weight(layer, "bias");
  for_channels(in[0], out, mean.size(),
               [&](double x, size_t c) { return (x - mean[c]) / std::sqrt(variance[c] + eps) * weight[c] + bias[c]; });
}

}  // namespace softneuro
