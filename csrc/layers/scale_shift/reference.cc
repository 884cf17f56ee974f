#include "layers/contract/layer.h"

namespace softneuro {

void scale_shift_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out) {
  const std::vector<double> scale = reference_weight(layer, "scale"), shift = reference_weight(layer, "shift");
  const int64_t plane = out.shape.product(2, out.shape.rank()), count = out.shape.elements();
  for (int64_t i = 0; i < count; ++i) {
    const auto channel = static_cast<size_t>(i / plane % out.shape[1]);
    out.data[i] = in[0].data[i] * scale[channel] + shift[channel];
  }
}

}  // namespace softneuro
