#include "kernels/dot_scaled/layout.h"
#include "kernels/store/policy.h"
#include "kernels/unroll.h"
#include "kernels/vector_groups.h"
#include "simd/integers.h"

namespace softneuro::SN_ISA {
namespace dot_scaled {

// From the weights in use to those being fetched, into L2 as dot_rows does.
constexpr int ahead = 1040;
constexpr int streams = 2;  // panels read at a time, each from a part of the weights of its own
constexpr int step = dot_scaled_step, group = DotScaled::group;
constexpr int upper = static_cast<int>(0xffff0000), lower = 0xf000;  // bits of an integer in its vectors

SN_INLINE void fetch_line(const int32_t* at) { prefetch_l2(reinterpret_cast<const float*>(at)); }

// The lower bits of weight j of a step, where they belong.
template <int j>
SN_INLINE Vi lower_bits(Vi all) {
  constexpr int left = 12 - 4 * j;
  if constexpr (left >= 0) return (all << left) & lower;
  return (all >> -left) & lower;
}

// Weights 2 * pair and 2 * pair + 1 of the step at w, times their scales.
template <int bits, int pair>
SN_INLINE void unpack(const int32_t* w, Vf scale, Vf (&weight)[2]) {
  const Vi both = load(w + pair * lanes);
  Vi first = both & upper, second = both << 16;
  if constexpr (bits == 20) {
    const Vi rest = load(w + step / 2 * lanes);
    first |= lower_bits<2 * pair>(rest);
    second |= lower_bits<2 * pair + 1>(rest);
  }
  weight[0] = to_float(first) * scale;
  weight[1] = to_float(second) * scale;
}

// `count` panels: first, first + distance, ...
template <int bits, int count, int vectors, bool fetch>
[[gnu::flatten]] void compute(const DotScaled& p, const ClampBounds& bounds, int first, int distance) {
  constexpr int size = dot_scaled_step_vectors(bits) * lanes;
  // Two sets of sums where one could not hide the latency.
  constexpr int sums = count * vectors, sets = sums < 4 ? 2 : 1;
  const int32_t* w[count];
  unroll<count>([&](auto n) {
    w[n] = p.weights + static_cast<size_t>(first + n * distance) * dot_scaled_panel_size(p.k, bits, lanes);
  });
  Vf sum[2][sums];
  unroll<sets * sums>([&](auto i) { sum[i / sums][i % sums] = zero(); });
  // What follows the last whole step of each vector, and zeros.
  float last[vectors][step];
  const int whole = p.k - p.k % step;
  for (int i = 0; i < vectors; ++i) {
    for (int j = 0; j < step; ++j) last[i][j] = whole + j < p.k ? p.x[i * p.x_stride + whole + j] : 0;
  }
  for (int l = 0; l < p.k; l += group) {
    Vf scale[count];
    unroll<count>([&](auto n) {
      scale[n] = from_bits(load(w[n]));
      w[n] += lanes;
    });
    const int end = p.k - l < group ? p.k : l + group;
    for (int k = l; k < end; k += step) {
      const float* const x = k < whole ? p.x + k : last[0];
      const ptrdiff_t stride = k < whole ? p.x_stride : step;
      unroll<step / 2>([&](auto pair) {
        unroll<count>([&](auto n) {
          if constexpr (fetch) fetch_line(w[n] + ahead + pair * lanes);
          Vf weight[2];
          unpack<bits, pair>(w[n], scale[n], weight);
          unroll<2 * vectors>([&](auto i) {
            constexpr int odd = i % 2, vector = i / 2;
            Vf& y = sum[odd % sets][n * vectors + vector];
            y = fma(weight[odd], set(x[vector * stride + 2 * pair + odd]), y);
          });
        });
      });
      unroll<count>([&](auto n) {
        if constexpr (fetch && bits == 20) fetch_line(w[n] + ahead + step / 2 * lanes);
        w[n] += size;
      });
    }
  }
  if constexpr (sets == 2) unroll<sums>([&](auto i) { sum[0][i] = sum[0][i] + sum[1][i]; });
  unroll<count>([&](auto n) { finish_panel<vectors>(p, bounds, first + n * distance, sum[0] + n * vectors); });
}

template <int bits, int vectors, bool fetch>
void compute_panels(const DotScaled& p, const ClampBounds& bounds, int begin, int end) {
  const int part = (end - begin) / streams;
  for (int n = 0; n < part; ++n) compute<bits, streams, vectors, fetch>(p, bounds, begin + n, part);
  for (int n = begin + streams * part; n < end; ++n) compute<bits, 1, vectors, fetch>(p, bounds, n, 0);
}

template <int bits>
void with_vectors(const DotScaled& p, const ClampBounds& bounds, int begin, int end) {
  unroll<DotScaled::most_vectors>([&](auto i) {
    constexpr int vectors = i + 1;
    if (p.vectors != vectors) return;
    if (p.fetch) return compute_panels<bits, vectors, true>(p, bounds, begin, end);
    compute_panels<bits, vectors, false>(p, bounds, begin, end);
  });
}

inline void run(const DotScaled& p, int begin, int end) {
  const ClampBounds bounds = clamp_bounds(p.epilogue.activation);
  if (p.bits == 20) {
    with_vectors<20>(p, bounds, begin, end);
  } else {
    with_vectors<16>(p, bounds, begin, end);
  }
  activate_panels(p, begin, end);
}

// A group of a panel, from columns of weights in vectors of outputs; advances `to`.
inline void pack_group(const Vf* column, int count, int bits, int32_t*& to) {
  constexpr float least = 1e-28f;  // so that scales have all their bits
  Vf largest = zero();
  for (int j = 0; j < count; ++j) largest = max(largest, abs(column[j]));
  // Infinities become NaN here, and NaN stays.
  largest = largest + zero() * largest;
  const Vm some = lt(set(least), largest);
  const int shift = 32 - bits;
  const auto most = static_cast<float>((1 << (bits - 1)) - 1), unit = static_cast<float>(1 << shift);
  const Vf factor = select(some, set(most) / largest, zero());
  const Vf scale = select(is_nan(largest), largest, select(some, largest / set(most * unit), zero()));
  store(to, softneuro::SN_ISA::bits(scale));
  to += lanes;
  for (int at = 0; at < count; at += step) {
    Vi whole[step], rest = {};
    for (int j = 0; j < step; ++j) {
      const Vf rounded = round(column[at + j] * factor);
      const Vf value = select(is_nan(largest), zero(), rounded);
      whole[j] = to_integers(value) << shift;
      rest |= ((whole[j] >> 12) & 15) << (4 * j);
    }
    for (int pair = 0; pair < step / 2; ++pair, to += lanes) {
      store(to, (whole[2 * pair] & upper) | ((whole[2 * pair + 1] >> 16) & 0xffff));
    }
    if (bits != 20) continue;
    store(to, rest);
    to += lanes;
  }
}

inline void pack(int n, int k, int bits, const float* weights, int32_t* packed) {
  for (int first = 0; first < n; first += lanes) {
    for (int l = 0; l < k; l += group) {
      const int count = k - l < group ? k - l : group;
      float rows[lanes][group] = {};
      for (int i = 0; i < lanes && first + i < n; ++i) {
        __builtin_memcpy(rows[i], weights + static_cast<size_t>(first + i) * k + l, count * sizeof(float));
      }
      Vf column[group];
      for (int j = 0; j < group; j += lanes) {
        Vf some[lanes];
        load_columns(rows[0] + j, group, some);
        for (int i = 0; i < lanes; ++i) column[j + i] = some[i];
      }
      pack_group(column, round_up(count, step), bits, packed);
    }
  }
}

}  // namespace dot_scaled
}  // namespace softneuro::SN_ISA

namespace softneuro {

SN_KERNEL_TABLE(DotScaledKernels, dot_scaled) = {
    .lanes = SN_ISA::lanes,
    .pack = SN_ISA::dot_scaled::pack,
    .run = SN_ISA::dot_scaled::run,
};

}  // namespace softneuro
