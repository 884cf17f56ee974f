// dynamic_quantize: x[...,C] -> steps[...,C], scale, zero: the whole numbers that x becomes in eight bits, zero point
// taken off, by a scale that follows from its values: one for each of its rows, or one for all. x is about steps *
// scale; what hosts store is steps + zero. Scale and zero have the shape [...,1] of rows, or [] of all.
#pragma once

#include "layers/contract/layer.h"
#include "layers/quantized/dynamic_steps.h"

namespace softneuro {

struct DynamicQuantizeParams : DynamicSteps {
  bool by_row = false;
  int64_t rows = 1, c = 1;  // all of x in one row if it is not by row
};

// Throws Error about the first thing that is wrong with attributes or the input.
DynamicQuantizeParams dynamic_quantize_params(const Layer& layer, const Shape& in);

}  // namespace softneuro
