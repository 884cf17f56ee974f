// rotary: x * cosine + turned(x) * sine, where turned(x) has the second half of a row, negated, before the first.
#pragma once

#include <span>

#include "layers/contract/layer.h"

namespace softneuro {

// Throws Error unless x has rows of an even length, and cosine and sine broadcast to it with whole rows.
void check_rotary(const Layer& layer, std::span<const TensorDesc> in);

void rotary_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out);

}  // namespace softneuro
