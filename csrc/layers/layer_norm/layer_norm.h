// layer_norm: (x - mean) / sqrt(variance + eps) * weight + bias, statistics of the last `axes` axes.
#pragma once

#include "layers/contract/layer.h"

namespace softneuro {

struct LayerNormParams {
  Shape normalized;  // the last axes: the shape of weight and bias
  double eps = 0;
};

// Throws Error about a number of axes that the shape does not have and weights of another shape.
LayerNormParams layer_norm_params(const Layer& layer, const Shape& shape);

}  // namespace softneuro
