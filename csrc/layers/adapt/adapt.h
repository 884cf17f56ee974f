// adapt: the same blob in another schema. Put in by plans, priced and chosen like any other layer.
#pragma once

#include "layers/contract/layer.h"

namespace softneuro {

void adapt_reference(const Layer& layer, std::span<const RefTensor> in, RefTensor out);

}  // namespace softneuro
