#include "layers/compare/compare.h"
#include "layers/shared/broadcast.h"

namespace softneuro {

void compare_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out) {
  const Comparison comparison = comparison_of(layer);
  for (int64_t i = 0; i < out.shape.elements(); ++i) {
    const double a = in[0].data[broadcast_source(i, out.shape, in[0].shape)];
    const double b = in[1].data[broadcast_source(i, out.shape, in[1].shape)];
    out.data[i] = holds(comparison, a, b) ? 1 : 0;
  }
}

}  // namespace softneuro
