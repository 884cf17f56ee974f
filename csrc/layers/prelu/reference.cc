#include "layers/scale_shift/channels.h"

namespace softneuro {

void prelu_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out) {
  const std::vector<double> weight = reference_weight(layer, "weight");
  for_channels(in[0], out, weight.size(), [&](double x, size_t c) { return x > 0 ? x : weight[c] * x; });
}

}  // namespace softneuro
