// expand: repeats axes of size one, and puts new ones in front, as NumPy's broadcast_to does.
#pragma once

#include "layers/contract/layer.h"

namespace softneuro {

void expand_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out);

}  // namespace softneuro
