// constant: weight `value` as a blob. No input.
#pragma once

#include "layers/contract/layer.h"

namespace softneuro {

// The schema that the value is handed over in.
Schema constant_schema(const Layer& layer);

void constant_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out);

}  // namespace softneuro
