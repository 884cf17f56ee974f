#include "base/error.h"
#include "layers/gather/gather.h"

namespace softneuro {

void gather_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out) {
  const Shape &x = in[0].shape, &ids = in[1].shape;
  const GatherParams p = gather_params(layer, x);
  for (int64_t i = 0; i < ids.elements(); ++i) {
    auto index = static_cast<int64_t>(in[1].data[i]);
    if (p.from_end && index < 0) index += p.size;
    if (index < 0 || index >= p.size) throw Error("there is no index " + std::to_string(index));
    int64_t from = 0, rest = i;
    for (int axis = x.rank() - 1; axis >= 0; --axis) {
      from += (axis == p.axis ? index : rest % ids[axis]) * x.product(axis + 1, x.rank());
      rest /= ids[axis];
    }
    out.data[i] = in[0].data[from];
  }
}

}  // namespace softneuro
