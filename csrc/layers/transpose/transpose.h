// transpose: output axis i is input axis perm[i].
#pragma once

#include "layers/contract/layer.h"

namespace softneuro {

// Throws Error if `perm` is no permutation of the axes.
std::vector<int> transpose_perm(const Layer& layer, int rank);

void transpose_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out);

}  // namespace softneuro
