#include "kernels/conv_nchw/conv_nchw.h"

#include <algorithm>

#include "kernels/integers.h"
#include "kernels/levels.h"

namespace softneuro {

SN_KERNEL_LIST(ConvNchwKernels, conv_nchw, SN_VECTOR_LEVELS)
const ConvNchwKernels* conv_nchw_kernels(Isa isa) { return find_kernels(conv_nchw_list, isa); }

int conv_nchw_panels(const ConvNchwShape& shape) {
  return shape.groups * ceil_div(shape.out_channels, conv_nchw_panel);
}

size_t conv_nchw_packed_size(const ConvNchwShape& shape) {
  return static_cast<size_t>(shape.groups) * shape.out_channels * shape.in_channels * shape.kernel_h * shape.kernel_w;
}

void conv_nchw_pack(const ConvNchwShape& shape, const float* weights, float* packed) {
  const size_t filter = static_cast<size_t>(shape.in_channels) * shape.kernel_h * shape.kernel_w;
  for (int g = 0; g < shape.groups; ++g) {
    for (int first = 0; first < shape.out_channels; first += conv_nchw_panel) {
      const int width = std::min(conv_nchw_panel, shape.out_channels - first);
      const float* filters = weights + (static_cast<size_t>(g) * shape.out_channels + first) * filter;
      for (size_t i = 0; i < filter; ++i) {
        for (int k = 0; k < width; ++k) *packed++ = filters[k * filter + i];
      }
    }
  }
}

}  // namespace softneuro
