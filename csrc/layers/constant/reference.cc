#include <algorithm>

#include "layers/constant/constant.h"

namespace softneuro {

void constant_reference(const Layer& layer, std::span<const RefTensor>, RefTensor out) {
  const std::vector<double> value = reference_weight(layer, "value");
  std::copy(value.begin(), value.end(), out.data);
}

}  // namespace softneuro
