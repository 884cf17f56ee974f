// The transform of weights: rows and columns are independent, hence two passes. Ahead of all runs in double, since it
// is done once and its rounding would stay in every result; in passing over Vf. See winograd.h.
#pragma once

#include "kernels/unroll.h"
#include "kernels/winograd/passes.h"
#include "kernels/winograd/tile.h"
#include "kernels/winograd/transform.h"
#include "kernels/winograd/winograd.h"
#include "simd/simd.h"

namespace softneuro::SN_ISA {
namespace winograd {

// The compiler makes as many registers of these as the level needs.
using Doubles [[gnu::vector_size(lanes * sizeof(double))]] = double;
using Floats [[gnu::vector_size(lanes * sizeof(float))]] = float;

// A whole block at once: weights are far apart, and lines that are written in halves would be fetched twice.
inline void transform_weights(const WinogradWeights& g, const float* taps, int width, float* dst, size_t dst_weight) {
  Doubles half[winograd_max_axis][winograd_max_axis];
  for (int r = 0; r < g.taps_h; ++r) {
    for (int j = 0; j < g.columns; ++j) half[r][j] = Doubles{};
    for (int s = 0; s < g.taps_w; ++s) {
      Floats from;
      __builtin_memcpy(&from, taps + static_cast<size_t>(r * g.taps_w + s) * width, sizeof(from));
      const Doubles x = __builtin_convertvector(from, Doubles);
      for (int j = 0; j < g.columns; ++j) half[r][j] += g.gw[j * g.taps_w + s] * x;
    }
  }
  for (int i = 0; i < g.rows; ++i) {
    for (int j = 0; j < g.columns; ++j, dst += dst_weight) {
      Doubles sum = {};
      for (int r = 0; r < g.taps_h; ++r) sum += g.gh[i * g.taps_h + r] * half[r][j];
      const Floats to = __builtin_convertvector(sum, Floats);
      __builtin_memcpy(dst, &to, sizeof(to));
    }
  }
}

// ---- in passing ----

template <int positions, int taps, int j, int tap>
struct Weight {
  static constexpr float value = static_cast<float>(winograd_weight(positions, taps, j, tap).value());
};

// Row j of G over every second tap.
template <int positions, int taps, int j, int first>
SN_INLINE Vf weigh(const Vf (&g)[taps]) {
  constexpr float scale = Weight<positions, taps, j, first>::value;
  Vf sum = scale == 1 ? g[first] : g[first] * set(scale);
  unroll<(taps - first - 1) / 2>([&](auto i) {
    constexpr int tap = first + 2 + 2 * decltype(i)::value;
    sum = add_times(sum, Weight<positions, taps, j, tap>(), g[tap]);
  });
  return sum;
}

// G g. The rows of +p and -p are sums and differences.
template <int positions, int taps>
SN_INLINE void transform(const Vf (&g)[taps], Vf (&u)[positions]) {
  constexpr WinogradPoints points = winograd_points(positions);
  if constexpr (points.zero != 0) u[0] = g[0];
  unroll<points.pairs>([&](auto i) {
    constexpr int plus = points.zero + 2 * decltype(i)::value;
    const Vf even = weigh<positions, taps, plus, 0>(g), odd = weigh<positions, taps, plus, 1>(g);
    u[plus] = even + odd;
    u[plus + 1] = even - odd;
  });
  u[positions - 1] = g[taps - 1];
}

// Transforms the taps of all phases.
template <WinogradAxis axis, int taps, int weights>
SN_INLINE void transform_axis(const Vf (&g)[taps], Vf (&u)[weights]) {
  static_assert(taps == axis.taps && weights == axis.weights());
  unroll<axis.stride>([&](auto phase) {
    constexpr int n = axis.phase_positions(phase), of_phase = axis.phase_taps(phase), first = axis.first_weight(phase);
    if constexpr (of_phase == 1) {
      u[first] = g[phase];
    } else if constexpr (of_phase > 1) {
      Vf in[of_phase], out[n];
      unroll<of_phase>([&](auto i) { in[i] = g[i * axis.stride + phase]; });
      transform(in, out);
      unroll<n>([&](auto i) { u[first + i] = out[i]; });
    }
  });
}

struct PassingWeights {
  const float* from;  // [channel][tap][lane]
  int channels;
  float* to;  // [weight][channel], `width` floats from channel to channel
  int width;
  size_t to_weight;
};
// A kernel both of whose axes are of one form.
template <WinogradAxis axis>
[[gnu::flatten]] void transform_square(const PassingWeights& a) {
  constexpr int taps = axis.taps, weights = axis.weights();
  const float* from = a.from;
  float* to = a.to;
  for (int i = 0; i < a.channels; ++i, from += taps * taps * lanes, to += a.width) {
    Vf half[taps][weights];
    unroll<taps>([&](auto r) {
      Vf g[taps];
      unroll<taps>([&](auto s) { g[s] = load(from + (r * taps + s) * lanes); });
      transform_axis<axis>(g, half[r]);
    });
    unroll<weights>([&](auto x) {
      Vf g[taps], u[weights];
      unroll<taps>([&](auto r) { g[r] = half[r][x]; });
      transform_axis<axis>(g, u);
      unroll<weights>([&](auto y) { store(to + (y * weights + x) * a.to_weight, u[y]); });
    });
  }
}

struct PassingTable {
  void (*at[max_stride][max_kernel][max_tile])(const PassingWeights&) = {};  // less one each
};
constexpr PassingTable passing_table() {
  PassingTable table;
  unroll<max_stride * max_kernel * max_tile>([&](auto i) {
    constexpr int tile = i % max_tile + 1, kernel = i / max_tile % max_kernel + 1,
                  stride = i / max_tile / max_kernel + 1;
    if constexpr (kernel > 1 && has_transform(tile, kernel, stride)) {
      table.at[stride - 1][kernel - 1][tile - 1] = transform_square<WinogradAxis{tile, kernel, stride}>;
    }
  });
  return table;
}
constexpr PassingTable passing = passing_table();

}  // namespace winograd
}  // namespace softneuro::SN_ISA
