// dynamic_linear: x[...,C] * weight[K,C]^T + bias[K] -> [...,K], where x is brought to eight bits, of a scale that
// follows from its own values: one for each of its rows, or one for all.
#pragma once

#include "layers/linear/linear.h"
#include "layers/quantized/dynamic_steps.h"

namespace softneuro {

struct DynamicLinearParams : DynamicSteps {
  LinearParams size;
  bool rows = false;
};

// Throws Error about the first thing that is wrong with attributes, weights or the input.
DynamicLinearParams dynamic_linear_params(const Layer& layer, const TensorDesc& in);

}  // namespace softneuro
