#include <algorithm>

#include "layers/slice/slice.h"

namespace softneuro {

void slice_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out) {
  const Shape& shape = in[0].shape;
  const SliceParams p = slice_params(layer, shape);
  const int64_t outer = shape.product(0, p.axis), inner = shape.product(p.axis + 1, shape.rank());
  double* dst = out.data;
  for (int64_t i = 0; i < outer; ++i) {
    for (int64_t j = p.start; j < p.end; j += p.step) {
      dst = std::copy_n(in[0].data + (i * shape[p.axis] + j) * inner, inner, dst);
    }
  }
}

}  // namespace softneuro
