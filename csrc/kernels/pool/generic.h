// The pooling kernels over vectors of any type of elements. Contract: pool.h.
#pragma once

#include "base/lines.h"
#include "kernels/pool/taps.h"
#include "kernels/store/visit.h"

namespace softneuro::SN_ISA {
namespace pool {

// One window, all taps inside and their number known to the compiler, for one vector of channels.
template <class W, int rows, int taps>
SN_INLINE typename W::Vector fixed_window(const PoolRow& p, const typename W::Element* src) {
  const int64_t tap_stride = p.dilation * p.pixel;
  typename W::Vector acc = W::load(src);
#pragma GCC unroll 3
  for (int row = 0; row < rows; ++row) {
#pragma GCC unroll 3
    for (int tap = row == 0 ? 1 : 0; tap < taps; ++tap) {
      acc = W::step(acc, W::load(src + row * p.row_stride + tap * tap_stride));
    }
  }
  return acc;
}

// Any window, `vectors` vectors of channels. Every fourth tap goes to the same accumulator where one vector alone would
// wait for its own last sum.
template <class W, int vectors>
SN_INLINE void any_window(const PoolRow& p, const typename W::Element* src, int64_t taps, int count,
                          typename W::Vector (&acc)[vectors]) {
  using Vector = typename W::Vector;
  constexpr int chains = vectors == 1 ? 4 : 1;
  const int64_t tap_stride = p.dilation * p.pixel;
  Vector part[chains][vectors];
  for (auto& chain : part) {
    for (Vector& x : chain) x = W::start();
  }
  const auto step = [&](Vector(&chain)[vectors], const typename W::Element* at) {
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      chain[v] = W::step(chain[v], count == W::width ? W::load(at + v * W::width) : W::load(at, count));
    }
  };
  for (int64_t row = 0; row < p.rows; ++row) {
    const typename W::Element* at = src + row * p.row_stride;
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
    for (int c = 1; c < chains; ++c) acc[v] = W::step(acc[v], part[c][v]);
  }
}

// Three taps of a column. A maximum that heeds NaN takes three operations; the sum tells whether there is any (or
// infinities that cancel), so that the maxima may ignore it.
template <bool is_max, class T>
struct Column {
  Vf top, sum;

  SN_INLINE Column(const PoolRow& p, const T* src) {
    const Vf a = load(src), b = load(src + p.row_stride), c = load(src + 2 * p.row_stride);
    sum = a + b + c;
    if constexpr (is_max) top = at_least(at_least(a, b), c);
  }
};

// Outputs [begin, end), whose windows of 3x3 lie `step` columns apart, in one block of channels: what two windows share
// is reduced once.
template <bool is_max, class T, int step>
SN_INLINE void pool_columns(const PoolRow& p, int64_t begin, int64_t end) {
  using Three = Column<is_max, T>;
  const T* src = static_cast<const T*>(p.src) + p.spans[begin].begin * lanes;
  Three first(p, src), second(p, src + lanes);
  for (int64_t x = begin; x < end; ++x, src += step * lanes) {
    if (step == 2) second = Three(p, src + lanes);
    const Three third(p, src + 2 * lanes);
    const Vf sum = first.sum + second.sum + third.sum;
    T* dst = static_cast<T*>(p.dst) + x * p.dst_pixel;
    if constexpr (!is_max) {
      store(dst, sum * set(p.scale[x] * p.row_scale));
    } else if (any(is_nan(sum))) {
      store(dst, fixed_window<Maxima<T>, 3, 3>(p, src));
    } else {
      store(dst, at_least(at_least(first.top, second.top), third.top));
    }
    if (step == 1) first = second, second = third;
    if (step == 2) first = third;
  }
}

template <bool is_max, class T>
void pool_lanes_of(const PoolRow& p) {
  using W = Taps<is_max, T>;
  constexpr int width = W::width;
  const bool three = p.rows == 3, two = p.rows == 2;
  const bool columns = !is_quantized<T> && three && p.inner_begin < p.inner_end && p.spans[p.inner_begin].count == 3 &&
                       p.dilation == 1 && p.step <= 2 && p.pixel == lanes && p.channels == lanes;
  for (int64_t x = 0; x < p.outputs; ++x) {
    if constexpr (!is_quantized<T>) {
      if (columns && x == p.inner_begin) {
        p.step == 1 ? pool_columns<is_max, T, 1>(p, x, p.inner_end) : pool_columns<is_max, T, 2>(p, x, p.inner_end);
        x = p.inner_end - 1;
        continue;
      }
    }
    const PoolSpan span = p.spans[x];
    const T* src = static_cast<const T*>(p.src) + span.begin * p.pixel;
    T* dst = static_cast<T*>(p.dst) + x * p.dst_pixel;
    const typename W::End end(p, x);
    int64_t c = 0;
    // A fixed window is as fast with one vector as with four.
    if ((three && span.count == 3) || (two && span.count == 2)) {
      for (; c + width <= p.channels; c += width) {
        end.put(dst + c, three ? fixed_window<W, 3, 3>(p, src + c) : fixed_window<W, 2, 2>(p, src + c));
      }
    }
    for (; c + 4 * width <= p.channels; c += 4 * width) {
      typename W::Vector acc[4];
      any_window<W>(p, src + c, span.count, width, acc);
#pragma GCC unroll 4
      for (int v = 0; v < 4; ++v) end.put(dst + c + v * width, acc[v]);
    }
    for (; c < p.channels; c += width) {
      int count = p.channels - c < width ? static_cast<int>(p.channels - c) : width;
      // Part of a vector of bytes takes a load for each byte: so the last vector has some of the one before, too.
      if (is_quantized<T> && count < width && p.channels >= width) c = p.channels - width, count = width;
      typename W::Vector acc[1];
      any_window<W>(p, src + c, span.count, count, acc);
      end.put(dst + c, acc[0], count);
    }
  }
}

inline void pool_lanes(const PoolRow& p) {
  const DType type = p.formats != nullptr ? p.formats->from.type : DType::float32;
  with_elements(type, [&]<class T>() { p.is_max ? pool_lanes_of<true, T>(p) : pool_lanes_of<false, T>(p); });
}

// NaN in either operand gives NaN.
template <bool is_max>
SN_INLINE float step_one(float acc, float x) {
  return is_max ? (acc > x || acc != acc ? acc : x) : acc + x;
}

// `count` elements in one run.
template <bool is_max>
SN_INLINE float pool_run(const float* src, int64_t count) {
  using W = Taps<is_max, float>;
  Vf acc[4];
  for (Vf& part : acc) part = W::start();
  int64_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) acc[v] = W::step(acc[v], load(src + i + v * lanes));
  }
  for (; i + lanes <= count; i += lanes) acc[0] = W::step(acc[0], load(src + i));
#pragma GCC unroll 4
  for (int v = 1; v < 4; ++v) acc[0] = W::step(acc[0], acc[v]);
  float total = is_max ? reduce_max(acc[0]) : reduce_add(acc[0]);
  for (; i < count; ++i) total = step_one<is_max>(total, src[i]);
  return total;
}

// Outputs whose windows have two or three taps and lie two columns apart, from a line already reduced over rows.
template <bool is_max, int taps>
SN_INLINE void pool_inner_halving(const float* line, float* dst, int64_t outputs) {
  using W = Taps<is_max, float>;
  int64_t x = 0;
  // The last vector would read past the columns of its windows.
  for (; x + lanes < outputs; x += lanes) {
    Vf acc = even_lanes(load(line + 2 * x), load(line + 2 * x + lanes));
#pragma GCC unroll 2
    for (int tap = 1; tap < taps; ++tap) {
      acc = W::step(acc, even_lanes(load(line + 2 * x + tap), load(line + 2 * x + tap + lanes)));
    }
    store(dst + x, acc);
  }
  for (; x < outputs; ++x) {
    float acc = line[2 * x];
#pragma GCC unroll 2
    for (int tap = 1; tap < taps; ++tap) acc = step_one<is_max>(acc, line[2 * x + tap]);
    dst[x] = acc;
  }
}

template <bool is_max>
SN_INLINE float pool_span(const PoolRow& p, const float* line, int64_t x) {
  float acc = is_max ? -__builtin_inff() : 0;
  for (int64_t tap = 0; tap < p.spans[x].count; ++tap) {
    acc = step_one<is_max>(acc, line[p.spans[x].begin + tap * p.dilation]);
  }
  return acc;
}

template <bool is_max>
SN_INLINE void pool_inner(const PoolRow& p, const float* line, float* dst) {
  using W = Taps<is_max, float>;
  const int64_t begin = p.inner_begin, end = p.inner_end;
  if (begin >= end) return;
  const int64_t taps = p.spans[begin].count;
  const float* first = line + p.spans[begin].begin;
  if (p.step == 1) {
    for (int64_t x = begin; x < end; x += lanes) {
      const int count = end - x < lanes ? static_cast<int>(end - x) : lanes;
      Vf acc = W::start();
      for (int64_t tap = 0; tap < taps; ++tap) {
        const float* at = first + (x - begin) + tap * p.dilation;
        acc = W::step(acc, count == lanes ? load(at) : load_n(at, count));
      }
      store_n(dst + x, acc, count);
    }
  } else if (p.step == 2 && p.dilation == 1 && taps == 2) {
    pool_inner_halving<is_max, 2>(first, dst + begin, end - begin);
  } else if (p.step == 2 && p.dilation == 1 && taps == 3) {
    pool_inner_halving<is_max, 3>(first, dst + begin, end - begin);
  } else {
    for (int64_t x = begin; x < end; ++x) dst[x] = pool_span<is_max>(p, line, x);
  }
}

// The rows of taps as one line of values.
template <bool is_max, class T>
SN_INLINE void pool_rows(const PoolRow& p, const Reading<T>& reading, float* line) {
  using W = Taps<is_max, float>;
  for (int64_t x = 0; x < p.width; x += lanes) {
    const int count = p.width - x < lanes ? static_cast<int>(p.width - x) : lanes;
    Vf acc = W::start();
    for (int64_t row = 0; row < p.rows; ++row) {
      const T* at = static_cast<const T*>(p.src) + row * p.row_stride + x;
      acc = W::step(acc, count == lanes ? reading.value(at) : reading.value(at, count));
    }
    store_n(line + x, acc, count);
  }
}

template <bool is_max>
SN_INLINE void pool_floats(const PoolRow& p) {
  const float* line = static_cast<const float*>(p.src);
  float* const dst = static_cast<float*>(p.dst);
  if (p.outputs == 1 && p.spans[0].count == p.row_stride && p.dilation == 1) {
    dst[0] = pool_run<is_max>(line, p.rows * p.row_stride);
  } else {
    if (p.rows != 1) {
      pool_rows<is_max>(p, Reading<float>(), p.scratch);
      line = p.scratch;
    }
    for (int64_t x = 0; x < p.inner_begin; ++x) dst[x] = pool_span<is_max>(p, line, x);
    pool_inner<is_max>(p, line, dst);
    for (int64_t x = p.inner_end; x < p.outputs; ++x) dst[x] = pool_span<is_max>(p, line, x);
  }
  if constexpr (!is_max) {
    for (int64_t x = 0; x < p.outputs; ++x) dst[x] *= p.scale[x] * p.row_scale;
  }
}

inline void pool_line_of_floats(const PoolRow& p) { p.is_max ? pool_floats<true>(p) : pool_floats<false>(p); }

inline void pool_line(const PoolRow& p) {
  if (p.formats == nullptr || p.formats->from.type == DType::float32) return pool_line_of_floats(p);
  PoolRow floats = p;
  with_elements(p.formats->from.type, [&]<class T>() {
    const Reading<T> reading(p.formats->from);
    p.is_max ? pool_rows<true>(p, reading, p.scratch) : pool_rows<false>(p, reading, p.scratch);
  });
  floats.rows = 1, floats.row_stride = p.width;
  floats.src = p.scratch, floats.dst = p.scratch + whole_lines(p.width);
  pool_line_of_floats(floats);
  write_values(p.formats->to, static_cast<const float*>(floats.dst), p.dst, 0, p.outputs);
}

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

}  // namespace pool
}  // namespace softneuro::SN_ISA

namespace softneuro {

SN_KERNEL_TABLE(PoolKernels, pool) = {
    .lanes = SN_ISA::pool::pool_lanes,
    .line = SN_ISA::pool::pool_line,
    .max_vectors = SN_ISA::pool::max_vectors,
};

}  // namespace softneuro
