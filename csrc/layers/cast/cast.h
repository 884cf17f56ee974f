// cast: integers and booleans as reals, value by value. No attributes.
#pragma once

#include "layers/contract/layer.h"

namespace softneuro {

void cast_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out);

}  // namespace softneuro
