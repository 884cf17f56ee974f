// layer_norm: (x - mean) / sqrt(variance + eps) * weight + bias, statistics of the last `axes` axes.
#pragma once

#include "layers/layer_norm/reference.h"

namespace softneuro {

// Throws Error about a number of axes that the shape does not have and weights of another shape.
NormalizedRows layer_norm_params(const Layer& layer, const TensorDesc& x);

}  // namespace softneuro
