#include "layers/cumsum/cumsum.h"

namespace softneuro {

void cumsum_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out) {
  const auto axis = static_cast<int>(layer.attrs.integer("axis"));
  const int64_t size = out.shape[axis], inner = out.shape.product(axis + 1, out.shape.rank());
  for (int64_t i = 0; i < out.shape.elements(); ++i) {
    const bool is_first = i / inner % size == 0;
    out.data[i] = in[0].data[i] + (is_first ? 0 : out.data[i - inner]);
  }
}

}  // namespace softneuro
