#include "kernels/winograd/winograd.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/integers.h"
#include "kernels/levels.h"
#include "kernels/winograd_1968/pairs.h"

namespace softneuro {

namespace {

// G of F(positions - taps + 1, taps): [position][tap].
std::vector<double> phase_weight_transform(int positions, int taps) {
  std::vector<double> g;
  for (int j = 0; j < positions; ++j) {
    for (int k = 0; k < taps; ++k) g.push_back(taps == 1 ? 1 : winograd_weight(positions, taps, j, k).value());
  }
  return g;
}

// Power of the noise in F(outputs, taps) if each product has noise of its own power: the sum over outputs and positions
// of A'^2 |G row|^2 |B' row|^2.
double phase_noise(int outputs, int taps) {
  if (taps <= 1) return outputs * taps;
  const int positions = outputs + taps - 1;
  const WinogradPoints points = winograd_points(positions);
  const std::vector<double> g = phase_weight_transform(positions, taps);
  double total = 0;
  for (int j = 0; j < positions; ++j) {
    const bool finite = j + 1 < positions;
    const WinogradPoly poly = winograd_poly(points, finite ? j : 0, finite ? 1 : 0);
    double a = finite ? 0 : 1, b = 0, weights = 0;
    for (int i = 0; finite && i < outputs; ++i) a += std::pow(points.at[j].value(), 2 * i);
    a *= std::pow(winograd_scale(positions, j).value(), 2);
    for (int k = 0; k <= poly.degree; ++k) b += std::pow(poly.at[k].value(), 2);
    for (int k = 0; k < taps; ++k) weights += std::pow(g[static_cast<size_t>(j) * taps + k], 2);
    total += a * b * weights;
  }
  return total;
}

// The noise of all phases together, over the power of their result.
double noise_gain(const WinogradAxis& axis) {
  double total = 0;
  for (int phase = 0; phase < axis.stride; ++phase) total += phase_noise(axis.tile, axis.phase_taps(phase));
  return total / (axis.tile * axis.taps);
}

}  // namespace

std::vector<double> winograd_weight_transform(const WinogradAxis& axis) {
  std::vector<double> g(static_cast<size_t>(axis.weights()) * axis.taps);
  for (int phase = 0; phase < axis.stride; ++phase) {
    const int taps = axis.phase_taps(phase), weights = axis.first_weight(phase + 1) - axis.first_weight(phase);
    if (weights == 0) continue;
    const std::vector<double> part = phase_weight_transform(axis.phase_positions(phase), taps);
    for (int j = 0; j < weights; ++j) {
      double* row = &g[static_cast<size_t>(axis.first_weight(phase) + j) * axis.taps];
      for (int k = 0; k < taps; ++k) row[phase + k * axis.stride] = part[static_cast<size_t>(j) * taps + k];
    }
  }
  return g;
}

SN_KERNEL_LIST(WinogradKernels, winograd, SN_VECTOR_LEVELS)
const WinogradKernels* winograd_kernels(Isa isa) { return find_kernels(winograd_list, isa); }

int winograd_panels(const WinogradShape& shape, int block) {
  return shape.groups * ceil_div(ceil_div(shape.out_channels, block), shape.panel());
}

size_t winograd_packed_size(const WinogradShape& shape, int block) {
  const int in_blocks = ceil_div(shape.in_channels, block), width = round_up(shape.out_channels, block);
  const size_t of_group = shape.in_passing
                              ? static_cast<size_t>(in_blocks) * block * width * shape.kernel_h * shape.kernel_w
                              : shape.weight_floats(width, in_blocks, block) * shape.weights();
  return static_cast<size_t>(shape.groups) * of_group;
}

size_t winograd_bias_size(const WinogradShape& shape, int block) {
  return static_cast<size_t>(round_up(shape.groups * shape.out_channels, block));
}

double winograd_error(const WinogradShape& shape) {
  const double gain = noise_gain(shape.across_rows()) * noise_gain(shape.along_rows());
  return 1.3 * std::numeric_limits<float>::epsilon() * std::sqrt(gain);
}

void winograd_pack(const WinogradShape& shape, const WinogradKernels& kernels, const WeightRows& rows, float* packed) {
  if (shape.in_passing) return kernels.pack_taps(shape, rows, packed);
  constexpr int most_channels = 8;  // at a time, so that the weights of an output channel are read in lines
  const int block = kernels.block, taps = shape.kernel_h * shape.kernel_w;
  const int in_channels = round_up(shape.in_channels, block), out_blocks = ceil_div(shape.out_channels, block);
  const std::vector<double> gh = winograd_weight_transform(shape.across_rows());
  const std::vector<double> gw = winograd_weight_transform(shape.along_rows());
  const WinogradWeights transform{shape.across_rows().weights(),
                                  shape.along_rows().weights(),
                                  shape.kernel_h,
                                  shape.kernel_w,
                                  gh.data(),
                                  gw.data()};
  std::vector<float> lanes(static_cast<size_t>(most_channels) * taps * shape.panel() * block);
  for (int g = 0; g < shape.groups; ++g) {
    const float* group = rows.weights + static_cast<size_t>(g) * shape.out_channels * shape.in_channels * taps;
    for (int first = 0; first < out_blocks; first += shape.panel()) {
      const int width = std::min(shape.panel(), out_blocks - first) * block;  // lanes of this panel
      const size_t weight = shape.weight_floats(width, in_channels / block, block);
      for (int c = 0; c < in_channels; c += most_channels) {
        const int channels = std::min(most_channels, in_channels - c);
        const int real = std::clamp(shape.in_channels - c, 0, channels) * taps;
        std::fill(lanes.begin(), lanes.end(), 0.0F);
        for (int lane = 0; lane < std::min(width, shape.out_channels - first * block); ++lane) {
          const int channel = first * block + lane;
          const float* from = group + (static_cast<size_t>(channel) * shape.in_channels + c) * taps;
          const float factor = rows.factors == nullptr ? 1 : rows.factors[g * shape.out_channels + channel];
          for (int i = 0; i < real; ++i) lanes[static_cast<size_t>(i) * width + lane] = factor * from[i];
        }
        for (int i = 0; i < channels; ++i) {
          for (int lane = 0; lane < width; lane += block) {
            kernels.transform_weights(transform, &lanes[static_cast<size_t>(i) * taps * width + lane], width,
                                      packed + static_cast<size_t>(c + i) * width + lane, weight);
          }
        }
      }
      for (int i = 0; i < shape.weights(); ++i, packed += weight) {
        float* const terms = packed + static_cast<size_t>(in_channels) * width;
        if (shape.adds) winograd_1968_normalize(block, in_channels, packed, {terms, terms + block});
      }
    }
  }
}

}  // namespace softneuro
