// look_up: of each value of a quantized input another one, as a table says.
#pragma once

#include "layers/contract/layer.h"

namespace softneuro {

inline constexpr int64_t table_values = 256;

void look_up_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out);

}  // namespace softneuro
