#include <algorithm>

#include "base/error.h"
#include "layers/take/take.h"

namespace softneuro {

void take_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out) {
  const TakeParams p = take_params(layer, in[0].shape);
  double* to = out.data;
  for (int64_t i = 0; i < p.outer; ++i) {
    for (int64_t k = 0; k < in[1].shape.elements(); ++k) {
      auto index = static_cast<int64_t>(in[1].data[k]);
      if (p.from_end && index < 0) index += p.size;
      if (index < 0 || index >= p.size) throw Error("there is no index " + std::to_string(index));
      to = std::copy_n(in[0].data + (i * p.size + index) * p.inner, p.inner, to);
    }
  }
}

}  // namespace softneuro
