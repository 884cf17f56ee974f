#include "kernels/winograd_int16/winograd_int16.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/integers.h"
#include "kernels/levels.h"

namespace softneuro {
namespace {

// From the least byte to the largest.
constexpr double most_steps = 255;

// F(tile, 3) along one axis, by position.
struct Axis {
  int tile, positions;
  std::vector<double> weights;      // G: [position][tap]
  std::vector<double> plus, minus;  // the sums of B's positive and of its negative numbers
  std::vector<double> input;        // |B'|^2, of data without structure
  std::vector<double> output;       // |A'|^2
};

const Axis& axis_of(int tile) {
  static const Axis two{
      2, 4, {1, 0, 0, .5, .5, .5, .5, -.5, .5, 0, 0, 1}, {1, 2, 1, 1}, {1, 0, 1, 1}, {2, 2, 2, 2}, {1, 2, 2, 1}};
  constexpr double sixth = 1. / 6, twelfth = 1. / 12;
  static const Axis four{4,
                         6,
                         {.25, 0, 0, -sixth, -sixth, -sixth, -sixth, sixth, -sixth, twelfth / 2, twelfth, sixth,
                          twelfth / 2, -twelfth, sixth, 0, 0, 1},
                         {5, 2, 5, 3, 3, 5},
                         {5, 8, 5, 3, 3, 5},
                         {42, 34, 34, 10, 10, 42},
                         {1, 4, 4, 85, 85, 1}};
  return tile == 2 ? two : four;
}

// The most that a position's inputs may be: where B is positive there are `most_steps` more bytes than where it is not.
// It is 17340 at most, and Σ|B'| times what the first axis makes of them 20400, so nothing leaves 16 bits on the way.
double most_input(const Axis& down, size_t i, const Axis& along, size_t j) {
  const double plus = down.plus[i] * along.plus[j] + down.minus[i] * along.minus[j];
  const double minus = down.plus[i] * along.minus[j] + down.minus[i] * along.plus[j];
  return most_steps * std::max(plus, minus);
}

// Whole numbers that transformed weights are brought to, in one: `most` of the largest and `sum` of the largest sum of
// as many as make up a chunk. Each is rounded by half of one at most, so no sum of products with inputs up to
// `most_input` leaves 32 bits, in whatever order it is made.
double scale_of(double most, double sum, double most_input) {
  if (most == 0) return 1;
  const double whole_sum = (std::ldexp(1, 31) - 1) / most_input - 0.5 * winograd_int16_chunk;
  return std::min(INT16_MAX / most, whole_sum / sum);
}
// This is the scale of an output channel's transformed weights at one position.
double scale_of(const double* weights, int channels, double most_input) {
  double most = 0, largest_sum = 0;
  for (int begin = 0; begin < channels; begin += winograd_int16_chunk) {
    double sum = 0;
    for (int c = begin; c < std::min(begin + winograd_int16_chunk, channels); ++c) {
      most = std::max(most, std::abs(weights[c])), sum += std::abs(weights[c]);
    }
    largest_sum = std::max(largest_sum, sum);
  }
  return scale_of(most, largest_sum, most_input);
}

// An output channel's taps, [in channel][3][3], to [position][in channel].
void transform(const Axis& down, const Axis& along, int channels, const float* taps, double* to) {
  for (int c = 0; c < channels; ++c, taps += 9) {
    double half[3][6];
    for (int r = 0; r < 3; ++r) {
      for (int j = 0; j < along.positions; ++j) {
        const double* g = &along.weights[static_cast<size_t>(j) * 3];
        half[r][j] = g[0] * taps[r * 3] + g[1] * taps[r * 3 + 1] + g[2] * taps[r * 3 + 2];
      }
    }
    for (int i = 0; i < down.positions; ++i) {
      const double* g = &down.weights[static_cast<size_t>(i) * 3];
      for (int j = 0; j < along.positions; ++j) {
        to[static_cast<size_t>(i * along.positions + j) * channels + c] =
            g[0] * half[0][j] + g[1] * half[1][j] + g[2] * half[2][j];
      }
    }
  }
}

int16_t whole(double x) { return static_cast<int16_t>(std::lrint(x)); }

}  // namespace

SN_KERNEL_LIST(WinogradInt16Kernels, winograd_int16, SN_DOT_LEVELS)
const WinogradInt16Kernels* winograd_int16_kernels(Isa isa) { return find_kernels(winograd_int16_list, isa); }

bool winograd_int16_has_tile(int tile) { return tile == 2 || tile == 4; }

size_t winograd_int16_packed_size(const WinogradShape& s, int block) {
  const auto pairs = static_cast<size_t>(round_up(ceil_div(s.in_channels, 2), block));
  return (pairs + 1) * static_cast<size_t>(round_up(s.out_channels, block)) * s.positions() * s.groups;
}

void winograd_int16_pack(const WinogradShape& s, int block, const WeightRows& rows, float* packed) {
  const Axis &down = axis_of(s.tile_h), &along = axis_of(s.tile_w);
  const int positions = s.positions(), pairs = round_up(ceil_div(s.in_channels, 2), block);
  const int out_blocks = ceil_div(s.out_channels, block);
  const size_t of_lane = static_cast<size_t>(pairs + 1) * positions;
  std::memset(packed, 0, winograd_int16_packed_size(s, block) * sizeof(float));
  std::vector<double> transformed(static_cast<size_t>(positions) * s.in_channels);
  for (int channel = 0; channel < s.groups * s.out_channels; ++channel) {
    transform(down, along, s.in_channels, rows.weights + static_cast<ptrdiff_t>(channel) * s.in_channels * 9,
              transformed.data());
    const int group = channel / s.out_channels, k = channel % s.out_channels;
    const int first = k / block / winograd_panel * winograd_panel;  // output block of the panel
    const int width = std::min(winograd_panel, out_blocks - first) * block;
    float* to = packed + (static_cast<size_t>(group) * out_blocks + first) * block * of_lane + (k - first * block);
    const double factor = rows.factors == nullptr ? 1 : rows.factors[channel];
    const double* u = transformed.data();
    for (size_t i = 0; i < down.plus.size(); ++i) {
      for (size_t j = 0; j < along.plus.size(); ++j, u += s.in_channels) {
        const double scale = scale_of(u, s.in_channels, most_input(down, i, along, j));
        for (int c = 0; c < s.in_channels; c += 2) {
          const bool both = c + 1 < s.in_channels;
          const int16_t pair[2] = {whole(u[c] * scale), both ? whole(u[c + 1] * scale) : int16_t{}};
          std::memcpy(to + static_cast<ptrdiff_t>(c / 2) * width, pair, sizeof pair);
        }
        to += static_cast<ptrdiff_t>(pairs) * width;
        *to = static_cast<float>(factor / scale);
        to += width;
      }
    }
  }
}

double winograd_int16_error(const WinogradShape& s) {
  const Axis &down = axis_of(s.tile_h), &along = axis_of(s.tile_w);
  // Weights are taken for normal, with a deviation of 1 once they are transformed.
  const int chunk = std::clamp(s.in_channels, 1, winograd_int16_chunk);
  const double most = std::sqrt(2 * std::log(2.0 * std::max(s.in_channels, 2))), sum = 0.8 * chunk;
  const auto square = [](const Axis& axis, int position) {
    const double* g = &axis.weights[static_cast<size_t>(position) * 3];
    return g[0] * g[0] + g[1] * g[1] + g[2] * g[2];
  };
  double noise = 0;
  for (int i = 0; i < down.positions; ++i) {
    for (int j = 0; j < along.positions; ++j) {
      const auto row = static_cast<size_t>(i), column = static_cast<size_t>(j);
      const double scale = scale_of(most, sum, most_input(down, row, along, column));
      noise += down.output[row] * along.output[column] * down.input[row] * along.input[column] * square(down, i) *
               square(along, j) / (12 * scale * scale);
    }
  }
  return std::sqrt(noise / (9.0 * s.tile_h * s.tile_w)) + 1e-6;
}

}  // namespace softneuro
