// Pooling over precomputed windows: what pool2d and adaptive_pool2d routines share.
#pragma once

#include <vector>

#include "kernels/pool/pool.h"
#include "layers/contract/routine.h"

namespace softneuro {

// The windows along one axis.
struct PoolAxis {
  std::vector<PoolSpan> spans;  // by output coordinate
  std::vector<float> scale;     // of averages: one over the divisor's share of this axis
  int64_t dilation = 1;
  // Outputs in [inner_begin, inner_end) have windows of equal size, `step` apart.
  int64_t step = 1, inner_begin = 0, inner_end = 0;
};

struct PoolWindows {
  bool is_max = true;
  PoolAxis rows, cols;
};

// The windows of a pool2d.
PoolWindows pool2d_windows(const Problem& problem);

using MakePoolWindows = PoolWindows (*)(const Problem& problem);

// Routines of every layout and level, for the layer type whose windows `make` computes; with channels side by side of
// quantized blobs, too.
void add_pool_routines(RoutineList& list, const char* type, MakePoolWindows make);

}  // namespace softneuro
