#include "layers/shared/broadcast.h"
#include "layers/where/where.h"

namespace softneuro {

void where_reference(const Layer&, std::span<const RefTensor> in, RefTensor out) {
  for (int64_t i = 0; i < out.shape.elements(); ++i) {
    const auto value = [&](size_t k) { return in[k].data[broadcast_source(i, out.shape, in[k].shape)]; };
    out.data[i] = value(0) != 0 ? value(1) : value(2);
  }
}

}  // namespace softneuro
