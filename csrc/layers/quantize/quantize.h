// quantize: x -> the nearest values that eight bits stand for (PostOps::quantize). The layer itself leaves x as it is.
#pragma once

#include "layers/contract/layer.h"

namespace softneuro {

void quantize_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out);

}  // namespace softneuro
