#include <algorithm>

#include "layers/concat/concat.h"

namespace softneuro {

void concat_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out) {
  const int axis = static_cast<int>(layer.attrs.integer("axis")), rank = out.shape.rank();
  const int64_t outer = out.shape.product(0, axis), row = out.shape.product(axis, rank);
  int64_t offset = 0;
  for (const RefTensor& x : in) {
    const int64_t run = x.shape.product(axis, rank);
    for (int64_t i = 0; i < outer; ++i) std::copy_n(x.data + i * run, run, out.data + i * row + offset);
    offset += run;
  }
}

}  // namespace softneuro
