// What routines of 1x1 convolutions on blocked blobs share that do not use conv_direct's kernels.
#pragma once

#include <string>

#include "base/refusal.h"
#include "kernels/pointwise_shape.h"
#include "layers/conv2d/blocked.h"

namespace softneuro {

inline PointwiseShape pointwise_shape(const Conv2dParams& p) {
  return {.in_channels = narrow(p.c),
          .out_channels = narrow(p.k),
          .h = narrow(p.h),
          .w = narrow(p.w),
          .out_h = narrow(p.oh),
          .out_w = narrow(p.ow),
          .stride_h = narrow(p.sh),
          .stride_w = narrow(p.sw)};
}

// most_channels: of the input, which scratch grows with.
inline Refusal check_pointwise(const Conv2dParams& p, int64_t most_channels) {
  if (!p.pointwise()) return "not a 1x1 kernel without padding";
  if (p.groups != 1) return "has groups";
  if (p.c > most_channels) return "more than " + std::to_string(most_channels) + " input channels";
  return check_int_sizes(p);
}

}  // namespace softneuro
