#include "layers/dynamic_linear/dynamic_linear.h"

namespace softneuro {

void dynamic_linear_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out) {
  const DynamicLinearParams p = dynamic_linear_params(layer, {in[0].shape});
  const auto [rows, c, k] = p.size;
  const std::vector<double> weight = reference_weight(layer, "weight");
  std::vector<double> bias(static_cast<size_t>(k), 0.0);
  if (layer.find_weight("bias") != nullptr) bias = reference_weight(layer, "bias");
  const FloatRange all = reference_range(in[0].data, rows * c);
  for (int64_t row = 0; row < rows; ++row) {
    const double* x = in[0].data + row * c;
    const QuantizeSteps q = p.steps(p.rows ? reference_range(x, c) : all);
    const std::vector<double> steps = reference_steps(q, x, c);
    for (int64_t j = 0; j < k; ++j) {
      double sum = 0;
      for (int64_t i = 0; i < c; ++i) sum += steps[static_cast<size_t>(i)] * weight[static_cast<size_t>(j * c + i)];
      out.data[row * k + j] = sum * static_cast<double>(q.scale) + bias[static_cast<size_t>(j)];
    }
  }
}

}  // namespace softneuro
