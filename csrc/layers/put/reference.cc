#include <algorithm>

#include "base/error.h"
#include "layers/put/put.h"

namespace softneuro {

void put_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out) {
  const PutParams p = put_params(layer, in[0].shape);
  const int64_t count = in[2].shape.elements();
  std::copy_n(in[0].data, in[0].shape.elements(), out.data);
  for (int64_t i = 0; i < p.outer; ++i) {
    for (int64_t k = 0; k < count; ++k) {
      auto index = static_cast<int64_t>(in[2].data[k]);
      if (p.from_end && index < 0) index += p.size;
      if (index < 0 || index >= p.size) throw Error("there is no index " + std::to_string(index));
      std::copy_n(in[1].data + (i * count + k) * p.inner, p.inner, out.data + (i * p.size + index) * p.inner);
    }
  }
}

}  // namespace softneuro
