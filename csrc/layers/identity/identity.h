// identity: the input, in any layout.
#pragma once

#include "layers/contract/layer.h"

namespace softneuro {

void identity_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out);

}  // namespace softneuro
