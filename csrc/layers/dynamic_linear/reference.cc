#include <algorithm>
#include <cmath>

#include "layers/dynamic_linear/dynamic_linear.h"

namespace softneuro {
namespace {

FloatRange range_of(const double* x, int64_t count) {
  FloatRange range{0, 0};
  for (int64_t i = 0; i < count; ++i) {
    const auto value = static_cast<float>(x[i]);
    if (!std::isfinite(value)) return {std::nanf(""), std::nanf("")};
    range = {std::min(range.least, value), std::max(range.most, value)};
  }
  return range;
}

}  // namespace

void dynamic_linear_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out) {
  const DynamicLinearParams p = dynamic_linear_params(layer, {in[0].shape});
  const auto [rows, c, k] = p.size;
  const std::vector<double> weight = reference_weight(layer, "weight");
  std::vector<double> bias(static_cast<size_t>(k), 0.0), steps(static_cast<size_t>(c));
  if (layer.find_weight("bias") != nullptr) bias = reference_weight(layer, "bias");
  const FloatRange all = range_of(in[0].data, rows * c);
  for (int64_t row = 0; row < rows; ++row) {
    const double* x = in[0].data + row * c;
    const QuantizeSteps q = p.steps(p.rows ? range_of(x, c) : all);
    for (int64_t i = 0; i < c; ++i) {
      const auto value = static_cast<float>(x[i]);
      const float step = q.reciprocal ? value * (1 / q.scale) : value / q.scale;
      const auto least = static_cast<float>(q.least - q.zero), most = static_cast<float>(q.most - q.zero);
      steps[static_cast<size_t>(i)] =
          static_cast<double>(std::isnan(step) ? least : std::nearbyint(std::clamp(step, least, most)));
    }
    for (int64_t j = 0; j < k; ++j) {
      double sum = 0;
      for (int64_t i = 0; i < c; ++i) sum += steps[static_cast<size_t>(i)] * weight[static_cast<size_t>(j * c + i)];
      out.data[row * k + j] = sum * static_cast<double>(q.scale) + bias[static_cast<size_t>(j)];
    }
  }
}

}  // namespace softneuro
