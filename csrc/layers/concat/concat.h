// concat: inputs side by side along one axis.
#pragma once

#include "layers/contract/layer.h"

namespace softneuro {

void concat_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out);

}  // namespace softneuro
