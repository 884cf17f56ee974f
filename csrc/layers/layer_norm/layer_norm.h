// layer_norm: (x - mean) / sqrt(variance + eps) * weight + bias, statistics of the last `axes` axes.
#pragma once

#include "layers/layer_norm/reference.h"

namespace softneuro {

// Both throw Error about a number of axes that the shape does not have and weights of another shape.
NormalizedRows last_axes_params(const Layer& layer, const TensorDesc& x, std::initializer_list<std::string_view> roles);
NormalizedRows layer_norm_params(const Layer& layer, const TensorDesc& x);

}  // namespace softneuro
