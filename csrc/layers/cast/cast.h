// cast: integers and booleans as reals, value by value, or any as integers or booleans.
#pragma once

#include "layers/contract/layer.h"

namespace softneuro {

// The type that the attribute `to` asks for; float32 for reals. Throws Error.
DType cast_type(const Layer& layer);

void cast_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out);

}  // namespace softneuro
