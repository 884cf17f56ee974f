// cumsum: sums of all integers up to each along an axis. What the type does not hold wraps around.
#pragma once

#include "layers/contract/layer.h"

namespace softneuro {

void cumsum_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out);

}  // namespace softneuro
