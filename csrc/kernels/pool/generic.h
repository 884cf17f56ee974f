#include "kernels/pool/pool.h"
#include "simd/simd.h"

namespace softneuro::SN_ISA {

template <bool is_max>
SN_INLINE Vf pool_start() {
  return is_max ? set(-__builtin_inff()) : zero();
}
template <bool is_max>
SN_INLINE Vf pool_step(Vf acc, Vf x) {
  return is_max ? max(acc, x) : acc + x;
}
// NaN in either operand gives NaN.
template <bool is_max>
SN_INLINE float pool_step(float acc, float x) {
  return is_max ? (acc > x || acc != acc ? acc : x) : acc + x;
}

// One window, all taps inside and their number known to the compiler, for one vector of channels.
template <bool is_max, int rows, int taps>
SN_INLINE Vf pool_window(const PoolRow& p, const float* src) {
  const int64_t tap_stride = p.dilation * p.pixel;
  Vf acc = load(src);
#pragma GCC unroll 3
  for (int row = 0; row < rows; ++row) {
#pragma GCC unroll 3
    for (int tap = row == 0 ? 1 : 0; tap < taps; ++tap) {
      acc = pool_step<is_max>(acc, load(src + row * p.row_stride + tap * tap_stride));
    }
  }
  return acc;
}

// Any window, `vectors` vectors of channels. Every fourth tap goes to the same accumulator where one vector alone would
// wait for its own last sum.
template <bool is_max, int vectors>
SN_INLINE void pool_window(const PoolRow& p, const float* src, int64_t taps, int count, Vf (&acc)[vectors]) {
  constexpr int chains = vectors == 1 ? 4 : 1;
  const int64_t tap_stride = p.dilation * p.pixel;
  Vf part[chains][vectors];
  for (auto& chain : part) {
    for (Vf& x : chain) x = pool_start<is_max>();
  }
  const auto step = [&](Vf(&chain)[vectors], const float* at) {
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      chain[v] = pool_step<is_max>(chain[v], count == lanes ? load(at + v * lanes) : load_n(at, count));
    }
  };
  for (int64_t row = 0; row < p.rows; ++row) {
    const float* at = src + row * p.row_stride;
    int64_t tap = 0;
    for (; tap + chains <= taps; tap += chains) {
#pragma GCC unroll 4
      for (int c = 0; c < chains; ++c) step(part[c], at + (tap + c) * tap_stride);
    }
    for (; tap < taps; ++tap) step(part[0], at + tap * tap_stride);
  }
#pragma GCC unroll 4
  for (int v = 0; v < vectors; ++v) {
    acc[v] = part[0][v];
#pragma GCC unroll 4
    for (int c = 1; c < chains; ++c) acc[v] = pool_step<is_max>(acc[v], part[c][v]);
  }
}

// Three taps of a column. A maximum that heeds NaN takes three operations; the sum tells whether there is any (or
// infinities that cancel), so that the maxima may ignore it.
template <bool is_max>
struct PoolColumn {
  Vf top, sum;

  SN_INLINE PoolColumn(const PoolRow& p, const float* src) {
    const Vf a = load(src), b = load(src + p.row_stride), c = load(src + 2 * p.row_stride);
    sum = a + b + c;
    if constexpr (is_max) top = at_least(at_least(a, b), c);
  }
};

// Outputs [begin, end), whose windows of 3x3 lie `step` columns apart, in one block of channels: what two windows share
// is reduced once.
template <bool is_max, int step>
SN_INLINE void pool_columns(const PoolRow& p, int64_t begin, int64_t end) {
  using Column = PoolColumn<is_max>;
  const float* src = p.src + p.spans[begin].begin * lanes;
  Column first(p, src), second(p, src + lanes);
  for (int64_t x = begin; x < end; ++x, src += step * lanes) {
    if (step == 2) second = Column(p, src + lanes);
    const Column third(p, src + 2 * lanes);
    const Vf sum = first.sum + second.sum + third.sum;
    float* dst = p.dst + x * p.dst_pixel;
    if constexpr (!is_max) {
      store(dst, sum * set(p.scale[x] * p.row_scale));
    } else if (any(is_nan(sum))) {
      store(dst, pool_window<true, 3, 3>(p, src));
    } else {
      store(dst, at_least(at_least(first.top, second.top), third.top));
    }
    if (step == 1) first = second, second = third;
    if (step == 2) first = third;
  }
}

template <bool is_max>
SN_INLINE void pool_lanes_of(const PoolRow& p) {
  const bool three = p.rows == 3, two = p.rows == 2;
  const bool columns = three && p.inner_begin < p.inner_end && p.spans[p.inner_begin].count == 3 && p.dilation == 1 &&
                       p.step <= 2 && p.pixel == lanes && p.channels == lanes;
  for (int64_t x = 0; x < p.outputs; ++x) {
    if (columns && x == p.inner_begin) {
      p.step == 1 ? pool_columns<is_max, 1>(p, x, p.inner_end) : pool_columns<is_max, 2>(p, x, p.inner_end);
      x = p.inner_end - 1;
      continue;
    }
    const PoolSpan span = p.spans[x];
    const float* src = p.src + span.begin * p.pixel;
    float* dst = p.dst + x * p.dst_pixel;
    const Vf scale = set(is_max ? 1.0f : p.scale[x] * p.row_scale);
    const auto finish = [&](Vf acc) { return is_max ? acc : acc * scale; };
    int64_t c = 0;
    // A fixed window is as fast with one vector as with four.
    if ((three && span.count == 3) || (two && span.count == 2)) {
      for (; c + lanes <= p.channels; c += lanes) {
        store(dst + c, finish(three ? pool_window<is_max, 3, 3>(p, src + c) : pool_window<is_max, 2, 2>(p, src + c)));
      }
    }
    for (; c + 4 * lanes <= p.channels; c += 4 * lanes) {
      Vf acc[4];
      pool_window<is_max>(p, src + c, span.count, lanes, acc);
#pragma GCC unroll 4
      for (int v = 0; v < 4; ++v) store(dst + c + v * lanes, finish(acc[v]));
    }
    for (; c < p.channels; c += lanes) {
      const int count = p.channels - c < lanes ? static_cast<int>(p.channels - c) : lanes;
      Vf acc[1];
      pool_window<is_max>(p, src + c, span.count, count, acc);
      store_n(dst + c, finish(acc[0]), count);
    }
  }
}

inline void pool_lanes(const PoolRow& p) { p.is_max ? pool_lanes_of<true>(p) : pool_lanes_of<false>(p); }

// `count` elements in one run.
template <bool is_max>
SN_INLINE float pool_run(const float* src, int64_t count) {
  Vf acc[4];
  for (Vf& part : acc) part = pool_start<is_max>();
  int64_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) acc[v] = pool_step<is_max>(acc[v], load(src + i + v * lanes));
  }
  for (; i + lanes <= count; i += lanes) acc[0] = pool_step<is_max>(acc[0], load(src + i));
#pragma GCC unroll 4
  for (int v = 1; v < 4; ++v) acc[0] = pool_step<is_max>(acc[0], acc[v]);
  float total = is_max ? reduce_max(acc[0]) : reduce_add(acc[0]);
  for (; i < count; ++i) total = pool_step<is_max>(total, src[i]);
  return total;
}

// Outputs whose windows have two or three taps and lie two columns apart, from a line already reduced over rows.
template <bool is_max, int taps>
SN_INLINE void pool_inner_halving(const float* line, float* dst, int64_t outputs) {
  int64_t x = 0;
  // The last vector would read past the columns of its windows.
  for (; x + lanes < outputs; x += lanes) {
    Vf acc = even_lanes(load(line + 2 * x), load(line + 2 * x + lanes));
#pragma GCC unroll 2
    for (int tap = 1; tap < taps; ++tap) {
      acc = pool_step<is_max>(acc, even_lanes(load(line + 2 * x + tap), load(line + 2 * x + tap + lanes)));
    }
    store(dst + x, acc);
  }
  for (; x < outputs; ++x) {
    float acc = line[2 * x];
#pragma GCC unroll 2
    for (int tap = 1; tap < taps; ++tap) acc = pool_step<is_max>(acc, line[2 * x + tap]);
    dst[x] = acc;
  }
}

template <bool is_max>
SN_INLINE void pool_span(const PoolRow& p, const float* line, int64_t x) {
  float acc = is_max ? -__builtin_inff() : 0;
  for (int64_t tap = 0; tap < p.spans[x].count; ++tap) {
    acc = pool_step<is_max>(acc, line[p.spans[x].begin + tap * p.dilation]);
  }
  p.dst[x] = acc;
}

template <bool is_max>
SN_INLINE void pool_inner(const PoolRow& p, const float* line) {
  const int64_t begin = p.inner_begin, end = p.inner_end;
  if (begin >= end) return;
  const int64_t taps = p.spans[begin].count;
  const float* first = line + p.spans[begin].begin;
  if (p.step == 1) {
    for (int64_t x = begin; x < end; x += lanes) {
      const int count = end - x < lanes ? static_cast<int>(end - x) : lanes;
      Vf acc = pool_start<is_max>();
      for (int64_t tap = 0; tap < taps; ++tap) {
        const float* at = first + (x - begin) + tap * p.dilation;
        acc = pool_step<is_max>(acc, count == lanes ? load(at) : load_n(at, count));
      }
      store_n(p.dst + x, acc, count);
    }
  } else if (p.step == 2 && p.dilation == 1 && taps == 2) {
    pool_inner_halving<is_max, 2>(first, p.dst + begin, end - begin);
  } else if (p.step == 2 && p.dilation == 1 && taps == 3) {
    pool_inner_halving<is_max, 3>(first, p.dst + begin, end - begin);
  } else {
    for (int64_t x = begin; x < end; ++x) pool_span<is_max>(p, line, x);
  }
}

template <bool is_max>
SN_INLINE void pool_line_of(const PoolRow& p) {
  if (p.outputs == 1 && p.spans[0].count == p.row_stride && p.dilation == 1) {
    p.dst[0] = pool_run<is_max>(p.src, p.rows * p.row_stride);
  } else {
    const float* line = p.src;
    if (p.rows != 1) {
      line = p.scratch;
      for (int64_t x = 0; x < p.width; x += lanes) {
        const int count = p.width - x < lanes ? static_cast<int>(p.width - x) : lanes;
        Vf acc = pool_start<is_max>();
        for (int64_t row = 0; row < p.rows; ++row) {
          const float* at = p.src + row * p.row_stride + x;
          acc = pool_step<is_max>(acc, count == lanes ? load(at) : load_n(at, count));
        }
        store_n(p.scratch + x, acc, count);
      }
    }
    for (int64_t x = 0; x < p.inner_begin; ++x) pool_span<is_max>(p, line, x);
    pool_inner<is_max>(p, line);
    for (int64_t x = p.inner_end; x < p.outputs; ++x) pool_span<is_max>(p, line, x);
  }
  if constexpr (!is_max) {
    for (int64_t x = 0; x < p.outputs; ++x) p.dst[x] *= p.scale[x] * p.row_scale;
  }
}

inline void pool_line(const PoolRow& p) { p.is_max ? pool_line_of<true>(p) : pool_line_of<false>(p); }

inline void max_vectors(const PoolVectors& p) {
  float* dst = p.dst;
  for (int y = 0; y < p.rows; ++y) {
    for (int x = 0; x < p.vectors; ++x, dst += lanes) {
      const float* src = p.src + y * p.src_row + x * p.src_column;
      Vf most = load(src + p.offsets[0]);
      for (int tap = 1; tap < p.taps; ++tap) most = max(most, load(src + p.offsets[tap]));
      store(dst, most);
    }
  }
}

}  // namespace softneuro::SN_ISA

namespace softneuro {

SN_KERNEL_TABLE(PoolKernels, pool) = {
    .lanes = SN_ISA::pool_lanes,
    .line = SN_ISA::pool_line,
    .max_vectors = SN_ISA::max_vectors,
};

}  // namespace softneuro
