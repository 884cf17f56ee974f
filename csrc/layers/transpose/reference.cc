
#include "layers/transpose/transpose.h"

namespace softneuro {

void transpose_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out) {
  const int rank = out.shape.rank();
  const std::vector<int> perm = transpose_perm(layer, rank);
  for (int64_t i = 0; i < out.shape.elements(); ++i) {
    int64_t position = i, from = 0;
    for (int axis = rank - 1; axis >= 0; --axis) {
      const int source = perm[static_cast<size_t>(axis)];
      from += position % out.shape[axis] * in[0].shape.product(source + 1, rank);
      position /= out.shape[axis];
    }
    out.data[i] = in[0].data[from];
  }
}

}  // namespace softneuro
