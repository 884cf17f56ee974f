#include "kernels/conv_first_winograd/conv_first_winograd.h"

#include <vector>

#include "kernels/integers.h"
#include "kernels/levels.h"
#include "kernels/winograd/winograd.h"

namespace softneuro {

SN_KERNEL_LIST(ConvFirstWinogradKernels, conv_first_winograd, SN_VECTOR_LEVELS)
const ConvFirstWinogradKernels* conv_first_winograd_kernels(Isa isa) {
  return find_kernels(conv_first_winograd_list, isa);
}

size_t conv_first_winograd_packed_size(const ConvFirstArgs& s, int block) {
  return static_cast<size_t>(round_up(s.out_channels, block)) * s.in_channels * s.kernel_h *
         conv_first_winograd_axis(s.kernel_w, s.stride_w).positions();
}

void conv_first_winograd_pack(const ConvFirstArgs& s, int block, const float* weights, float* packed) {
  const int rows = s.in_channels * s.kernel_h;
  const WinogradAxis axis = conv_first_winograd_axis(s.kernel_w, s.stride_w);
  const std::vector<double> g = winograd_weight_transform(axis);
  for (int first = 0; first < s.out_channels; first += block) {
    for (int r = 0; r < s.kernel_h; ++r) {
      for (int c = 0; c < s.in_channels; ++c) {
        for (int p = 0; p < axis.positions(); ++p, packed += block) {
          for (int lane = 0; lane < block; ++lane) {
            double sum = 0;
            if (first + lane < s.out_channels) {
              const float* row = weights + (static_cast<size_t>(first + lane) * rows + c * s.kernel_h + r) * s.kernel_w;
              for (int k = 0; k < s.kernel_w; ++k)
                sum += g[static_cast<size_t>(axis.weight_of(p)) * s.kernel_w + k] * row[k];
            }
            packed[lane] = static_cast<float>(sum);
          }
        }
      }
    }
  }
}

double conv_first_winograd_error(const ConvFirstArgs& s) {
  const WinogradAxis axis = conv_first_winograd_axis(s.kernel_w, s.stride_w);
  WinogradShape shape;
  shape.kernel_h = shape.tile_h = 1;
  shape.kernel_w = axis.taps, shape.tile_w = axis.tile, shape.stride_w = axis.stride;
  return winograd_error(shape);
}

}  // namespace softneuro
