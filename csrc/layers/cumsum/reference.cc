#include "layers/cumsum/cumsum.h"

namespace softneuro {

void cumsum_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out) {
  const CumsumParams p = cumsum_params(layer, out.shape);
  const int64_t size = out.shape[p.axis], inner = out.shape.product(p.axis + 1, out.shape.rank());
  const int64_t lines = size == 0 ? 0 : out.shape.elements() / size;
  for (int64_t line = 0; line < lines; ++line) {
    const int64_t start = line / inner * size * inner + line % inner;
    double sum = 0;
    for (int64_t i = 0; i < size; ++i) {
      const int64_t at = start + (p.reverse ? size - 1 - i : i) * inner;
      const double before = sum;
      sum += in[0].data[at];
      out.data[at] = p.exclusive ? before : sum;
    }
  }
}

}  // namespace softneuro
