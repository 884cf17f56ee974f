#include <cmath>

#include "layers/layer_norm/layer_norm.h"

namespace softneuro {

void layer_norm_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out) {
  const LayerNormParams p = layer_norm_params(layer, out.shape);
  const int64_t size = p.normalized.elements();
  std::vector<double> weight(static_cast<size_t>(size), 1.0), bias(static_cast<size_t>(size), 0.0);
  if (layer.find_weight("weight") != nullptr) weight = reference_weight(layer, "weight");
  if (layer.find_weight("bias") != nullptr) bias = reference_weight(layer, "bias");
  const int64_t count = out.shape.elements();
  for (int64_t row = 0; row < count; row += size) {
    const double* x = in[0].data + row;
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < size; ++i) mean += x[i] / static_cast<double>(size);
    for (int64_t i = 0; i < size; ++i) variance += (x[i] - mean) * (x[i] - mean) / static_cast<double>(size);
    for (int64_t i = 0; i < size; ++i) {
      const auto at = static_cast<size_t>(i);
      out.data[row + i] = (x[i] - mean) / std::sqrt(variance + p.eps) * weight[at] + bias[at];
    }
  }
}

}  // namespace softneuro
