#include "layers/activation/activation.h"

namespace softneuro {

void activation_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out) {
  const Activation activation = activation_params(layer);
  const int64_t count = out.shape.elements();
  for (int64_t i = 0; i < count; ++i) out.data[i] = reference_activation(activation, in[0].data[i]);
}

}  // namespace softneuro
