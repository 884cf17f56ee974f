// constant: weight `value` as a blob. No input.
#pragma once

#include "layers/layer.h"

namespace softneuro {

void constant_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out);

}  // namespace softneuro
