#include "kernels/winograd/winograd.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/integers.h"

namespace softneuro {

#define SN_KERNELS(isa) extern const WinogradKernels winograd_##isa;
#include "kernels/winograd/kernels.inc"
#undef SN_KERNELS

namespace {

// G of F(positions - taps + 1, taps): [position][tap].
std::vector<double> weight_transform(int positions, int taps) {
  const WinogradPoints points = winograd_points(positions);
  std::vector<double> g(static_cast<size_t>(positions) * taps);
  for (int j = 0; j + 1 < positions; ++j) {
    Rational n{1, 1};
    for (int l = 0; l + 1 < positions; ++l) {
      if (l != j) n = n * (points.at[j] - points.at[l]);
    }
    for (int k = 0; k < taps; ++k) {
      g[static_cast<size_t>(j) * taps + k] = (power(points.at[j], k) * Rational::make(n.den, n.num)).value();
    }
  }
  g.back() = 1;
  return g;
}

// Power of the noise in F(outputs, taps) over the power of its result if each product has noise of its own power: the
// sum over outputs and positions of A'^2 |G row|^2 |B' row|^2, over outputs * taps.
double noise_gain(int outputs, int taps) {
  const int positions = outputs + taps - 1;
  const WinogradPoints points = winograd_points(positions);
  const std::vector<double> g = weight_transform(positions, taps);
  double total = 0;
  for (int j = 0; j < positions; ++j) {
    const bool finite = j + 1 < positions;
    const WinogradPoly poly = winograd_poly(points, finite ? j : 0, finite ? 1 : 0);
    double a = finite ? 0 : 1, b = 0, weights = 0;
    for (int i = 0; finite && i < outputs; ++i) a += std::pow(points.at[j].value(), 2 * i);
    for (int k = 0; k <= poly.degree; ++k) b += std::pow(poly.at[k].value(), 2);
    for (int k = 0; k < taps; ++k) weights += std::pow(g[static_cast<size_t>(j) * taps + k], 2);
    total += a * b * weights;
  }
  return total / (outputs * taps);
}

// The weights of one input channel for the lanes of a panel: dst[position][lane] += ..., in two passes as rows and
// columns are independent. taps: [kernel_h][kernel_w][lane].
struct WeightTransform {
  int rows, columns, taps_h, taps_w, width;
  std::vector<double> gh, gw, half;

  WeightTransform(const WinogradShape& s, int width)
      : rows(s.positions_h()),
        columns(s.positions_w()),
        taps_h(s.kernel_h),
        taps_w(s.kernel_w),
        width(width),
        gh(weight_transform(rows, taps_h)),
        gw(weight_transform(columns, taps_w)),
        half(static_cast<size_t>(taps_h) * columns * width) {}

  void apply(const double* taps, float* dst, size_t dst_position) {
    std::vector<double> sum(static_cast<size_t>(width));
    for (int r = 0; r < taps_h; ++r) {
      for (int j = 0; j < columns; ++j) {
        double* to = half.data() + (static_cast<size_t>(r) * columns + j) * width;
        std::fill_n(to, width, 0.0);
        for (int s = 0; s < taps_w; ++s) {
          const double factor = gw[static_cast<size_t>(j) * taps_w + s];
          const double* from = taps + (static_cast<size_t>(r) * taps_w + s) * width;
          for (int lane = 0; lane < width; ++lane) to[lane] += factor * from[lane];
        }
      }
    }
    for (int i = 0; i < rows; ++i) {
      for (int j = 0; j < columns; ++j, dst += dst_position) {
        std::fill(sum.begin(), sum.end(), 0.0);
        for (int r = 0; r < taps_h; ++r) {
          const double factor = gh[static_cast<size_t>(i) * taps_h + r];
          const double* from = half.data() + (static_cast<size_t>(r) * columns + j) * width;
          for (int lane = 0; lane < width; ++lane) sum[static_cast<size_t>(lane)] += factor * from[lane];
        }
        for (int lane = 0; lane < width; ++lane) dst[lane] = static_cast<float>(sum[static_cast<size_t>(lane)]);
      }
    }
  }
};

}  // namespace

const WinogradKernels* winograd_kernels(Isa isa) {
  if (!isa_available(isa)) return nullptr;
#define SN_KERNELS(level) \
  if (isa == Isa::level) return &winograd_##level;
#include "kernels/winograd/kernels.inc"
#undef SN_KERNELS
  return nullptr;
}

int winograd_panels(const WinogradShape& shape, int block) {
  return shape.groups * ceil_div(ceil_div(shape.out_channels, block), winograd_panel);
}

size_t winograd_packed_size(const WinogradShape& shape, int block) {
  return static_cast<size_t>(shape.groups) * round_up(shape.out_channels, block) * round_up(shape.in_channels, block) *
         shape.positions();
}

size_t winograd_bias_size(const WinogradShape& shape, int block) {
  return static_cast<size_t>(round_up(shape.groups * shape.out_channels, block));
}

double winograd_error(const WinogradShape& shape) {
  const double gain = noise_gain(shape.tile_h, shape.kernel_h) * noise_gain(shape.tile_w, shape.kernel_w);
  return 1.3 * std::numeric_limits<float>::epsilon() * std::sqrt(gain);
}

void winograd_pack(const WinogradShape& shape, int block, const float* weights, float* packed) {
  const int taps = shape.kernel_h * shape.kernel_w, in_channels = round_up(shape.in_channels, block);
  const int out_blocks = ceil_div(shape.out_channels, block);
  for (int g = 0; g < shape.groups; ++g) {
    const float* group = weights + static_cast<size_t>(g) * shape.out_channels * shape.in_channels * taps;
    for (int first = 0; first < out_blocks; first += winograd_panel) {
      const int width = std::min(winograd_panel, out_blocks - first) * block;  // lanes of this panel
      WeightTransform transform(shape, width);
      std::vector<double> lanes(static_cast<size_t>(taps) * width);
      for (int c = 0; c < in_channels; ++c) {
        for (int tap = 0; tap < taps; ++tap) {
          for (int lane = 0; lane < width; ++lane) {
            const int k = first * block + lane;
            const bool real = k < shape.out_channels && c < shape.in_channels;
            lanes[static_cast<size_t>(tap) * width + lane] =
                real ? group[(static_cast<size_t>(k) * shape.in_channels + c) * taps + tap] : 0.0;
          }
        }
        transform.apply(lanes.data(), packed + static_cast<size_t>(c) * width,
                        static_cast<size_t>(in_channels) * width);
      }
      packed += static_cast<size_t>(shape.positions()) * in_channels * width;
    }
  }
}

}  // namespace softneuro
