// where: values of the second input where the first is true, and of the third elsewhere, with NumPy's broadcasting.
#pragma once

#include "layers/contract/layer.h"

namespace softneuro {

void where_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out);

}  // namespace softneuro
