#include "kernels/conv_first_winograd/conv_first_winograd.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/integers.h"
#include "kernels/winograd/winograd.h"

namespace softneuro {

#define SN_KERNELS(isa) extern const ConvFirstWinogradKernels conv_first_winograd_##isa;
#include "kernels/conv_first_winograd/kernels.inc"
#undef SN_KERNELS

const ConvFirstWinogradKernels* conv_first_winograd_kernels(Isa isa) {
  if (!isa_available(isa)) return nullptr;
#define SN_KERNELS(level) \
  if (isa == Isa::level) return &conv_first_winograd_##level;
#include "kernels/conv_first_winograd/kernels.inc"
#undef SN_KERNELS
  return nullptr;
}

size_t conv_first_winograd_packed_size(const ConvFirstArgs& s, int block) {
  return static_cast<size_t>(round_up(s.out_channels, block)) * s.in_channels * s.kernel_h *
         conv_first_winograd_positions(s.kernel_w, s.stride_w);
}

void conv_first_winograd_pack(const ConvFirstArgs& s, int block, const float* weights, float* packed) {
  const int rows = s.in_channels * s.kernel_h;
  for (int first = 0; first < s.out_channels; first += block) {
    for (int r = 0; r < s.kernel_h; ++r) {
      for (int c = 0; c < s.in_channels; ++c) {
        for (int phase = 0; phase < s.stride_w; ++phase) {
          const int taps = conv_first_winograd_taps(s.kernel_w, s.stride_w, phase);
          const int positions = conv_first_winograd_outputs + taps - 1;
          const std::vector<double> g =
              taps > 1 ? winograd_weight_transform(positions, taps) : std::vector<double>(positions, 1.0);
          for (int p = 0; p < positions; ++p, packed += block) {
            for (int lane = 0; lane < block; ++lane) {
              double sum = 0;
              if (first + lane < s.out_channels) {
                const float* row =
                    weights + (static_cast<size_t>(first + lane) * rows + c * s.kernel_h + r) * s.kernel_w;
                for (int k = 0; k < taps; ++k)
                  sum += g[static_cast<size_t>(p) * taps + k] * row[phase + k * s.stride_w];
              }
              packed[lane] = static_cast<float>(sum);
            }
          }
        }
      }
    }
  }
}

double conv_first_winograd_error(const ConvFirstArgs& s) {
  // The sums add up, and so do their errors' powers, in proportion to the taps.
  double power = 0;
  for (int phase = 0; phase < s.stride_w; ++phase) {
    WinogradShape shape;
    shape.kernel_h = shape.tile_h = 1;
    shape.kernel_w = conv_first_winograd_taps(s.kernel_w, s.stride_w, phase);
    shape.tile_w = conv_first_winograd_outputs;
    if (shape.kernel_w > 1) power += shape.kernel_w * std::pow(winograd_error(shape), 2);
  }
  return std::sqrt(power / s.kernel_w);
}

}  // namespace softneuro
