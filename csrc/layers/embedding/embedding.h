// embedding: rows of a constant matrix, by their indices. The run is rejected if there is no such row.
#pragma once

#include "layers/contract/layer.h"

namespace softneuro {

void embedding_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out);

}  // namespace softneuro
