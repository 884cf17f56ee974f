// rms_norm: x / sqrt(mean(x^2) + eps) * weight, the mean of the last `axes` axes.
#pragma once

#include "layers/layer_norm/reference.h"

namespace softneuro {

// Throws Error about a number of axes that the shape does not have and a weight of another shape.
NormalizedRows rms_norm_params(const Layer& layer, const TensorDesc& x);

}  // namespace softneuro
