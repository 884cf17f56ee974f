#include "layers/contract/layer.h"

namespace softneuro {

void prelu_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out) {
  const std::vector<double> weight = reference_weight(layer, "weight");
  const auto size = static_cast<int64_t>(weight.size());
  const int64_t plane = out.shape.product(2, out.shape.rank()), count = out.shape.elements();
  for (int64_t i = 0; i < count; ++i) {
    const double x = in[0].data[i];
    out.data[i] = x > 0 ? x : weight[static_cast<size_t>(i / plane % size)] * x;
  }
}

}  // namespace softneuro
