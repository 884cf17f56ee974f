// Transforms of F(m, r), made from points in exact rational arithmetic: m outputs of a correlation with r taps by
// m + r - 1 products (Toom-Cook, transposed; Winograd, "Arithmetic Complexity of Computations"):
//
//   y = A' [(G g) . (B' d)],   d: m + r - 1 inputs, g: r taps
//
// With points p_j, N_j = prod_{l != j} (p_j - p_l) and infinity as the last position:
//
//   B'[j] = coefficients of prod_{l != j} (x - p_l),   G[j][k] = p_j^k,   A'[i][j] = p_j^i / N_j
//
// N stands in A', where it costs nothing: G is applied in passing by some routines.
//
// A stride is reduced to this form: see WinogradAxis.
//
// Everything is constexpr, so that kernels are specialised by the coefficients; instruction-set files use it in
// constant expressions only.
#pragma once

#include <cstdint>

namespace softneuro {

// A number of position counts m + r - 1: larger transforms lose too many digits.
constexpr int winograd_max_positions = 10;
constexpr int winograd_max_axis = 13;  // positions of an axis, all phases together

// One axis of a convolution that is computed in tiles. A correlation of stride s is a sum of s ones of stride 1, its
// phases: every s-th sample with every s-th tap, from sample and tap 0, 1, ... s - 1 on. Their positions follow each
// other, so that the whole is again a linear transform to positions, products there, and one back; a phase of a single
// tap needs no arithmetic, and its weights are the same at all its positions: they are kept once. Together there are as
// many positions as a tile has inputs. Stride 2 makes three taps 9 products for 4 outputs instead of 12, with 6
// weights.
struct WinogradAxis {
  int tile = 1, taps = 1, stride = 1;

  constexpr int positions() const { return (tile - 1) * stride + taps; }
  constexpr int phase_taps(int phase) const { return (taps - phase + stride - 1) / stride; }
  constexpr int phase_positions(int phase) const { return phase_taps(phase) > 0 ? tile + phase_taps(phase) - 1 : 0; }
  constexpr int first_position(int phase) const {
    int sum = 0;
    for (int i = 0; i < phase; ++i) sum += phase_positions(i);
    return sum;
  }
  [[gnu::always_inline]] constexpr int weights() const { return first_weight(stride); }
  [[gnu::always_inline]] constexpr int first_weight(int phase) const {
    int sum = 0;
    for (int i = 0; i < phase; ++i) {
      const int n = (taps - i + stride - 1) / stride;
      sum += n > 1 ? tile + n - 1 : n;
    }
    return sum;
  }
  [[gnu::always_inline]] constexpr int weight_of(int position) const {
    int first = 0;
    for (int phase = 0; phase < stride; ++phase) {
      const int n = (taps - phase + stride - 1) / stride, count = n > 0 ? tile + n - 1 : 0;
      if (position < first + count) return first_weight(phase) + (n > 1 ? position - first : 0);
      first += count;
    }
    return -1;
  }
};

struct Rational {
  int64_t num = 0, den = 1;  // lowest terms, den > 0

  static constexpr Rational make(int64_t num, int64_t den) {
    int64_t a = num < 0 ? -num : num, b = den < 0 ? -den : den;
    while (b != 0) {
      const int64_t rest = a % b;
      a = b;
      b = rest;
    }
    if (a == 0) return {};
    return den < 0 ? Rational{-num / a, -den / a} : Rational{num / a, den / a};
  }
  constexpr double value() const { return static_cast<double>(num) / static_cast<double>(den); }
  friend constexpr bool operator==(const Rational&, const Rational&) = default;
};
constexpr Rational operator*(Rational a, Rational b) { return Rational::make(a.num * b.num, a.den * b.den); }
constexpr Rational operator-(Rational a, Rational b) {
  return Rational::make(a.num * b.den - b.num * a.den, a.den * b.den);
}
constexpr Rational power(Rational x, int exponent) {
  Rational result{1, 1};
  for (int i = 0; i < exponent; ++i) result = result * x;
  return result;
}

// Finite points, positions - 1 of them: zero first where their number is odd, then pairs +p, -p, which share work.
struct WinogradPoints {
  int zero = 0, pairs = 0;  // how many of each
  Rational at[winograd_max_positions] = {};

  constexpr int count() const { return zero + 2 * pairs; }
  constexpr void add_pair(int64_t num, int64_t den) {
    at[count()] = {num, den};
    at[count() + 1] = {-num, den};
    ++pairs;
  }
};

// A polynomial as coefficients of x^0, x^1, ...; its leading one is 1.
struct WinogradPoly {
  int degree = 0;
  Rational at[winograd_max_positions] = {{1, 1}};

  constexpr void times_root(Rational root) {
    ++degree;
    at[degree] = {};
    for (int k = degree; k >= 0; --k) at[k] = (k > 0 ? at[k - 1] : Rational{}) - at[k] * root;
  }
};
// prod (x - p) over the points but those in [skip, skip + skipped).
constexpr WinogradPoly winograd_poly(const WinogradPoints& points, int skip, int skipped) {
  WinogradPoly poly;
  for (int l = 0; l < points.count(); ++l) {
    if (l < skip || l >= skip + skipped) poly.times_root(points.at[l]);
  }
  return poly;
}

// The points set the error. These had the least for F(positions - 2, 3) in two dimensions among all symmetric sets of
// 1/4, 1/3, 2/5, 1/2, 3/5, 2/3, 3/4, 1, 5/4, 4/3, 3/2, 2, 5/2, 3, 4 with or without zero and one unpaired point (white
// data, 64 channels, float32 against float64), or were within a tenth of it with coefficients that are exact in
// float32. Search and small rationals: Barabasz et al., "Error Analysis and Improving the Accuracy of Winograd
// Convolution for Deep Neural Networks". Sets without zero need no unpaired point, which makes them better and cheaper.
constexpr WinogradPoints winograd_points(int positions) {
  WinogradPoints p;
  p.zero = positions > 1 && positions % 2 == 0 ? 1 : 0;
  switch (positions) {
    case 3:
    case 4:
      p.add_pair(1, 1);
      break;
    case 5:
      p.add_pair(1, 2), p.add_pair(5, 4);
      break;
    case 6:
      p.add_pair(2, 3), p.add_pair(3, 2);
      break;
    case 7:
      p.add_pair(1, 4), p.add_pair(3, 4), p.add_pair(2, 1);
      break;
    case 8:
      p.add_pair(1, 2), p.add_pair(1, 1), p.add_pair(2, 1);
      break;
    case 9:
      p.add_pair(1, 4), p.add_pair(2, 3), p.add_pair(5, 4), p.add_pair(2, 1);
      break;
    case 10:
      p.add_pair(1, 2), p.add_pair(3, 4), p.add_pair(5, 4), p.add_pair(5, 2);
      break;
    default:
      break;
  }
  return p;
}

// 1 / N_j of F(positions - taps + 1, taps); 1 for infinity.
constexpr Rational winograd_scale(int positions, int j) {
  if (j + 1 == positions) return {1, 1};
  const WinogradPoints points = winograd_points(positions);
  Rational n{1, 1};
  for (int l = 0; l + 1 < positions; ++l) {
    if (l != j) n = n * (points.at[j] - points.at[l]);
  }
  return Rational::make(n.den, n.num);
}
// G[j][tap].
constexpr Rational winograd_weight(int positions, int taps, int j, int tap) {
  if (j + 1 == positions) return {tap + 1 == taps ? 1 : 0, 1};
  return power(winograd_points(positions).at[j], tap);
}

}  // namespace softneuro
