// A 1x1 convolution without padding, of one group, as kernels on blocked blobs take it.
#pragma once

namespace softneuro {

struct PointwiseShape {
  int in_channels = 0, out_channels = 0;
  int h = 0, w = 0, out_h = 0, out_w = 0;
  int stride_h = 1, stride_w = 1;

  [[gnu::always_inline]] constexpr bool dense() const { return stride_h == 1 && stride_w == 1; }
};

}  // namespace softneuro
