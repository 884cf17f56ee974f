// Convolutions as kernels take them, and what all their routines ask of them.
#pragma once

#include "base/refusal.h"
#include "kernels/conv_direct/conv_direct.h"
#include "kernels/pointwise_shape.h"
#include "layers/conv2d/conv2d.h"
#include "layers/shared/kernel_sizes.h"
#include "layers/shared/split.h"

namespace softneuro {

inline Conv2dParams conv2d_params(const Problem& problem) { return conv2d_params(*problem.layer, problem.in[0]); }

Refusal check_int_sizes(const Conv2dParams& p);
// Accepts 1x1 convolutions without padding and groups.
Refusal check_pointwise(const Conv2dParams& p);
ConvDirectShape direct_shape(const Conv2dParams& p);
PointwiseShape pointwise_shape(const Conv2dParams& p);

// Threads that pay for a convolution (see split.h).
int worth_threads(const Conv2dParams& p, int threads);
// How work is best dealt, as a guess: small maps are bound by weights, which splitting by panels reads once.
inline int likely_split(int64_t pixels) {
  constexpr int64_t large = 28 * 28;
  return static_cast<int>(pixels >= large ? SplitBy::rows : SplitBy::panels);
}

}  // namespace softneuro
