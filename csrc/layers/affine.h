// Weights of the normalizations, packed.
#pragma once

#include <memory>

#include "layers/packed_floats.h"

namespace softneuro {

// `size` values of "weight", ones if the layer has none, and behind them those of "bias", zeros if it has none. Null if
// it has neither.
std::shared_ptr<const Packed> pack_affine(const Layer& layer, int64_t size);

}  // namespace softneuro
