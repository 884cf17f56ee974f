#include "layers/group_norm/group_norm.h"

#include <cmath>

namespace softneuro {

void group_norm_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out) {
  const GroupNormParams p = group_norm_params(layer, {out.shape});
  const int64_t channels = out.shape[1], plane = out.shape.product(2, out.shape.rank());
  const int64_t size = channels / p.groups * plane, count = out.shape.elements();
  std::vector<double> weight(static_cast<size_t>(channels), 1.0), bias(static_cast<size_t>(channels), 0.0);
  if (layer.find_weight("weight") != nullptr) weight = reference_weight(layer, "weight");
  if (layer.find_weight("bias") != nullptr) bias = reference_weight(layer, "bias");
  for (int64_t group = 0; group < count; group += size) {
    const double* x = in[0].data + group;
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < size; ++i) mean += x[i] / static_cast<double>(size);
    for (int64_t i = 0; i < size; ++i) variance += (x[i] - mean) * (x[i] - mean) / static_cast<double>(size);
    for (int64_t i = 0; i < size; ++i) {
      const auto c = static_cast<size_t>((group + i) / plane % channels);
      out.data[group + i] = (x[i] - mean) / std::sqrt(variance + p.eps) * weight[c] + bias[c];
    }
  }
}

}  // namespace softneuro
