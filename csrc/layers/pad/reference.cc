#include "layers/pad/pad.h"

namespace softneuro {

void pad_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out) {
  const Shape& shape = in[0].shape;
  const int rank = shape.rank();
  const PadParams p = pad_params(layer, shape);
  for (int64_t i = 0; i < out.shape.elements(); ++i) {
    int64_t position = i, from = 0;
    bool inside = true;
    for (int axis = rank - 1; axis >= 0; --axis) {
      const int64_t index = position % out.shape[axis] - p.before[static_cast<size_t>(axis)];
      const int64_t source = pad_source(p.mode, index, shape[axis]);
      inside = inside && source >= 0;
      from += source * shape.product(axis + 1, rank);
      position /= out.shape[axis];
    }
    out.data[i] = inside ? in[0].data[from] : static_cast<double>(p.value);
  }
}

}  // namespace softneuro
