// Layers of x[N,C,...] that are one operation of each element and constants of its channel: scale_shift, batch_norm,
// prelu.
#pragma once

#include <vector>

#include "layers/shared/pointwise.h"

namespace softneuro {

using ChannelConstants = std::vector<std::vector<double>>;

struct ChannelOp {
  const char* layer_type;
  ElementwiseOp op;
  // The operands behind x, as sections of the packing. Each has as many values as the layer's first weight.
  std::vector<const char*> constants;
  ChannelConstants (*values)(const Layer& layer);  // of each constant
};

// A routine in each layout of each level.
void add_channel_routines(RoutineList& list, const ChannelOp& op);

}  // namespace softneuro
