// pixel_shuffle: channels c * r * r + i * r + j become pixels (h * r + i, w * r + j) of channel c.
#pragma once

#include "layers/contract/layer.h"

namespace softneuro {

void pixel_shuffle_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out);

}  // namespace softneuro
