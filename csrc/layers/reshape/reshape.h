// reshape: the same elements in row-major order under another shape.
#pragma once

#include "layers/contract/layer.h"

namespace softneuro {

void reshape_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out);

}  // namespace softneuro
