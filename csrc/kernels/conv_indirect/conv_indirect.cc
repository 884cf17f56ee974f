#include "kernels/conv_indirect/conv_indirect.h"

#include <algorithm>

#include "kernels/integers.h"
#include "kernels/levels.h"

namespace softneuro {

SN_KERNEL_LIST(ConvIndirectKernels, conv_indirect, SN_VECTOR_LEVELS)
const ConvIndirectKernels* conv_indirect_kernels(Isa isa) { return find_kernels(conv_indirect_list, isa); }

size_t conv_indirect_packed_size(const ConvIndirectArgs& args, int lanes) {
  return static_cast<size_t>(round_up(args.out_channels, lanes)) * args.in_channels * args.kernel_h * args.kernel_w;
}

void conv_indirect_pack(const ConvIndirectArgs& args, int lanes, const float* weights, float* packed) {
  const int taps = args.kernel_h * args.kernel_w, width = args.tiling.panel * lanes;
  const size_t filter = static_cast<size_t>(args.in_channels) * taps;
  for (int first = 0; first < args.out_channels; first += width) {
    const int columns = std::min(width, round_up(args.out_channels - first, lanes));
    const int real = std::min(columns, args.out_channels - first);
    const float* from = weights + first * filter;
    for (int c = 0; c < args.in_channels; ++c) {
      for (int tap = 0; tap < taps; ++tap, ++from) {
        float* to = packed + (static_cast<size_t>(tap) * args.in_channels + c) * columns;
        for (int k = 0; k < real; ++k) to[k] = from[k * filter];
        std::fill(to + real, to + columns, 0.0f);
      }
    }
    packed += filter * columns;
  }
}

}  // namespace softneuro
