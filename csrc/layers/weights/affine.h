// Weights of the normalizations, packed.
#pragma once

#include "layers/contract/routine.h"

namespace softneuro {

// Sections of `size` values each: "weight", ones if the layer has none, and "bias", zeros if it has none. No sections
// if it has neither.
Packing affine_packing(const Layer& layer, int64_t size);
void pack_affine(const Layer& layer, Packed& to);

}  // namespace softneuro
