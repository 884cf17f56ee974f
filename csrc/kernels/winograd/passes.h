// The transforms along one axis over Vf, specialised by the points: encode<positions> is B', decode<outputs, positions>
// is A', encode_axis and decode_axis are those of all phases. Pairs of points +p, -p share both their polynomials and
// their powers; zeros and ones cost nothing.
#pragma once

#include "kernels/unroll.h"
#include "kernels/winograd/transform.h"

namespace softneuro::SN_ISA {
namespace winograd {

// The coefficients that the transforms of one size need, in float32.
template <int positions>
struct Coefficients {
  struct Poly {
    int degree = 0;
    float at[winograd_max_positions] = {};
  };
  struct Table {
    WinogradPoints points = winograd_points(positions);
    Poly zero, infinity, pair[winograd_max_positions / 2];  // of row j: without the point itself, or the pair
    float point[winograd_max_positions / 2] = {};           // of each pair
    float powers[winograd_max_positions / 2][winograd_max_positions] = {};
    // Whether N is the same for both points of a pair, or its negative.
    bool same_sign = points.pairs > 0 &&
                     winograd_scale(positions, points.zero) == winograd_scale(positions, points.zero + 1);
  };
  static constexpr Poly narrow(const WinogradPoly& exact) {
    Poly poly;
    poly.degree = exact.degree;
    for (int k = 0; k <= exact.degree; ++k) poly.at[k] = static_cast<float>(exact.at[k].value());
    return poly;
  }
  static constexpr Table make() {
    Table t;
    t.infinity = narrow(winograd_poly(t.points, 0, 0));
    if (t.points.zero != 0) t.zero = narrow(winograd_poly(t.points, 0, 1));
    for (int i = 0; i < t.points.pairs; ++i) {
      const int first = t.points.zero + 2 * i;
      t.pair[i] = narrow(winograd_poly(t.points, first, 2));
      t.point[i] = static_cast<float>(t.points.at[first].value());
      for (int k = 0; k < winograd_max_positions; ++k) {
        t.powers[i][k] = static_cast<float>((power(t.points.at[first], k) * winograd_scale(positions, first)).value());
      }
    }
    return t;
  }
  static constexpr Table table = make();
  static constexpr int zero = table.points.zero, pairs = table.points.pairs;
};

// sum + c * x, where c is a constant expression: a function object's value.
template <class C>
SN_INLINE Vf add_times(Vf sum, C, Vf x) {
  constexpr float c = C::value;
  if constexpr (c == 0) {
    return sum;
  } else if constexpr (c == 1) {
    return sum + x;
  } else if constexpr (c == -1) {
    return sum - x;
  } else {
    return fma(set(c), x, sum);
  }
}

enum class Row { zero, infinity, pair };
template <int positions, Row row, int index, int k>
struct Coefficient {
  static constexpr auto& table = Coefficients<positions>::table;
  static constexpr float value = row == Row::zero       ? table.zero.at[k]
                                 : row == Row::infinity ? table.infinity.at[k]
                                                        : table.pair[index].at[k];
};

// The polynomial's coefficients over d[shift], d[shift + 1], ...; the leading one is 1.
template <int positions, Row row, int index, int shift>
SN_INLINE Vf evaluate(const Vf (&d)[positions]) {
  constexpr auto& table = Coefficients<positions>::table;
  constexpr int degree = row == Row::zero       ? table.zero.degree
                         : row == Row::infinity ? table.infinity.degree
                                                : table.pair[index].degree;
  Vf sum = d[shift + degree];
  unroll<degree>([&](auto i) {
    constexpr int k = degree - 1 - decltype(i)::value;
    sum = add_times(sum, Coefficient<positions, row, index, k>(), d[shift + k]);
  });
  return sum;
}

template <int positions>
SN_INLINE void encode(const Vf (&d)[positions], Vf (&v)[positions]) {
  using C = Coefficients<positions>;
  if constexpr (C::zero != 0) v[0] = evaluate<positions, Row::zero, 0, 0>(d);
  // (x + p) R and (x - p) R for the points p and -p.
  unroll<C::pairs>([&](auto i) {
    constexpr int index = decltype(i)::value;
    const Vf r = evaluate<positions, Row::pair, index, 0>(d), xr = evaluate<positions, Row::pair, index, 1>(d);
    constexpr float p = C::table.point[index];
    v[C::zero + 2 * index] = p == 1 ? xr + r : fma(set(p), r, xr);
    v[C::zero + 2 * index + 1] = p == 1 ? xr - r : fnma(set(p), r, xr);
  });
  v[positions - 1] = evaluate<positions, Row::infinity, 0, 0>(d);
}

// A'[k] of the first of a pair's points.
template <int positions, int index, int k>
struct Power {
  static constexpr float value = Coefficients<positions>::table.powers[index][k];
};
template <int positions>
struct ZeroScale {
  static constexpr float value = static_cast<float>(winograd_scale(positions, 0).value());
};

template <int outputs, int positions>
SN_INLINE void decode(const Vf (&m)[positions], Vf (&y)[outputs]) {
  using C = Coefficients<positions>;
  Vf even[C::pairs + 1], odd[C::pairs + 1];
  unroll<C::pairs>([&](int i) {
    const Vf plus = m[C::zero + 2 * i], minus = m[C::zero + 2 * i + 1];
    even[i] = C::table.same_sign ? plus + minus : plus - minus;
    odd[i] = C::table.same_sign ? plus - minus : plus + minus;
  });
  unroll<outputs>([&](auto j) {
    constexpr int k = decltype(j)::value;
    constexpr bool has_infinity = k == outputs - 1, has_zero = k == 0 && C::zero != 0;
    const auto term = [&](auto i) { return k % 2 == 0 ? even[i] : odd[i]; };
    if constexpr (C::pairs == 0) {
      static_assert(positions <= 2 && outputs == 1);
      y[k] = positions == 1 ? m[0] : m[0] + m[1];
    } else {
      constexpr float first = Power<positions, 0, k>::value;
      y[k] = first == 1 ? term(Index<0>()) : term(Index<0>()) * set(first);
      unroll<C::pairs - 1>([&](auto i) {
        constexpr int index = decltype(i)::value + 1;
        y[k] = add_times(y[k], Power<positions, index, k>(), term(Index<index>()));
      });
      if constexpr (has_zero) y[k] = add_times(y[k], ZeroScale<positions>(), m[0]);
      if constexpr (has_infinity) y[k] = y[k] + m[positions - 1];
    }
  });
}

// The first axis.positions() samples and positions count.
template <WinogradAxis axis, int samples, int positions>
SN_INLINE void encode_axis(const Vf (&d)[samples], Vf (&v)[positions]) {
  static_assert(samples >= axis.positions() && positions >= axis.first_position(axis.stride));
  unroll<axis.stride>([&](auto phase) {
    constexpr int n = axis.phase_positions(phase), first = axis.first_position(phase);
    if constexpr (axis.phase_taps(phase) == 1) {
      unroll<n>([&](auto i) { v[first + i] = d[i * axis.stride + phase]; });
    } else if constexpr (n > 0) {
      Vf in[n], out[n];
      unroll<n>([&](auto i) { in[i] = d[i * axis.stride + phase]; });
      encode(in, out);
      unroll<n>([&](auto i) { v[first + i] = out[i]; });
    }
  });
}

template <WinogradAxis axis, int positions>
SN_INLINE void decode_axis(const Vf (&m)[positions], Vf (&y)[axis.tile]) {
  static_assert(positions >= axis.positions());
  unroll<axis.stride>([&](auto phase) {
    constexpr int n = axis.phase_positions(phase), first = axis.first_position(phase);
    if constexpr (n > 0) {
      Vf in[n], part[axis.tile];
      unroll<n>([&](auto i) { in[i] = m[first + i]; });
      if constexpr (axis.phase_taps(phase) == 1) {
        unroll<axis.tile>([&](int i) { part[i] = in[i]; });
      } else {
        decode(in, part);
      }
      unroll<axis.tile>([&](int i) { y[i] = phase == 0 ? part[i] : y[i] + part[i]; });
    }
  });
}

}  // namespace winograd
}  // namespace softneuro::SN_ISA
