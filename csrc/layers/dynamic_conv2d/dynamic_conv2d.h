// dynamic_conv2d: conv2d of what x[N,C,H,W] is in eight bits, by one scale that follows from its own values.
#pragma once

#include "layers/conv2d/conv2d.h"
#include "layers/quantized/dynamic_steps.h"

namespace softneuro {

struct DynamicConv2dParams : DynamicSteps {
  Conv2dParams size;
};

// Throws Error about the first thing that is wrong with attributes, weights or the input.
DynamicConv2dParams dynamic_conv2d_params(const Layer& layer, const TensorDesc& in);
// The layer without what is said of steps.
Layer plain_conv2d(const Layer& layer);

}  // namespace softneuro
