// activation: f(x), element by element; f is a name of kernels/activation.h.
#pragma once

#include "layers/contract/layer.h"

namespace softneuro {

// Throws Error about a function that does not exist or bounds that are NaN.
Activation activation_params(const Layer& layer);

}  // namespace softneuro
