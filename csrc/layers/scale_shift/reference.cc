#include "layers/scale_shift/channels.h"

namespace softneuro {

void scale_shift_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out) {
  const std::vector<double> scale = reference_weight(layer, "scale"), shift = reference_weight(layer, "shift");
  for_channels(in[0], out, scale.size(), [&](double x, size_t c) { return x * scale[c] + shift[c]; });
}

}  // namespace softneuro
