// dynamic_linear: x[...,C] * weight[K,C]^T + bias[K] -> [...,K], where x is brought to eight bits, of a scale that
// follows from its own values: one for each of its rows, or one for all.
#pragma once

#include "kernels/dynamic_rows/dynamic_rows.h"
#include "kernels/quantize/quantize.h"
#include "layers/linear/linear.h"

namespace softneuro {

struct DynamicLinearParams {
  LinearParams size;
  bool rows = false;
  int32_t least = 0, most = 255;
  bool symmetric = false;  // zero is the middle of least and most
  bool reciprocal = false;
  float eps = 0;  // the least scale

  // As hosts compute it in float32, of values in a range that has zero in it. Of a range that is not finite the scale
  // is NaN, and so is what comes out.
  QuantizeSteps steps(const FloatRange& range) const;
};

// Throws Error about the first thing that is wrong with attributes, weights or the input.
DynamicLinearParams dynamic_linear_params(const Layer& layer, const TensorDesc& in);

}  // namespace softneuro
