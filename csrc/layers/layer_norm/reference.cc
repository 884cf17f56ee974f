#include "layers/layer_norm/reference.h"

#include <cmath>

namespace softneuro {

void normalize_reference(const Layer& layer, const NormalizedRows& rows, const double* x, double* dst) {
  const auto size = static_cast<double>(rows.size);
  std::vector<double> weight(static_cast<size_t>(rows.weights), 1.0), bias(static_cast<size_t>(rows.weights), 0.0);
  if (layer.find_weight("weight") != nullptr) weight = reference_weight(layer, "weight");
  if (layer.find_weight("bias") != nullptr) bias = reference_weight(layer, "bias");
  const int64_t count = rows.images * rows.rows * rows.size;
  for (int64_t row = 0; row < count; row += rows.size) {
    double mean = 0, variance = 0;
    for (int64_t i = row; i < row + rows.size && !rows.about_zero; ++i) mean += x[i] / size;
    for (int64_t i = row; i < row + rows.size; ++i) variance += (x[i] - mean) * (x[i] - mean) / size;
    for (int64_t i = row; i < row + rows.size; ++i) {
      const size_t at = rows.weight_of(i);
      dst[i] = (x[i] - mean) / std::sqrt(variance + rows.eps) * weight[at] + bias[at];
    }
  }
}

}  // namespace softneuro
