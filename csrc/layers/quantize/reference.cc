#include <algorithm>

#include "layers/quantize/quantize.h"

namespace softneuro {

void quantize_reference(const Layer&, std::span<const RefTensor> in, RefTensor out) {
  std::copy_n(in[0].data, out.shape.elements(), out.data);
}

}  // namespace softneuro
