#include "layers/expand/expand.h"
#include "layers/shared/broadcast.h"

namespace softneuro {

void expand_reference(const Layer&, std::span<const RefTensor> in, RefTensor out) {
  for (int64_t i = 0; i < out.shape.elements(); ++i) {
    out.data[i] = in[0].data[broadcast_source(i, out.shape, in[0].shape)];
  }
}

}  // namespace softneuro
