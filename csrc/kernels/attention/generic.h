// Attention over Vf: tiles of rows by two vectors of keys, or of v's columns, in registers. Contract: attention.h.
#pragma once

#include "kernels/attention/attention.h"
#include "kernels/integers.h"
#include "kernels/unroll.h"
#include "simd/fours.h"
#include "simd/math.h"

namespace softneuro::SN_ISA {
namespace attention {

constexpr int most_sums = registers >= 32 ? 28 : 12;
constexpr int panel_vectors = 2;
// A tile's queries at one depth are a vector, and so are its maxima.
constexpr int tile_rows = most_sums / panel_vectors < lanes ? most_sums / panel_vectors : lanes;
// Rows of weights are apart by a vector more than they have, as powers of two would share few lines of the cache.
constexpr int weights_stride = attention_keys + lanes;
constexpr float none = -__builtin_inff();

// A tile's part of the scratch, in floats.
struct Tile {
  float *q, *context, *sum, *most;
  int stride;  // of context

  static int stride_of(int width) { return round_up(width, lanes); }
  static size_t floats(int depth, int width) {
    return static_cast<size_t>(lanes) * static_cast<size_t>(depth + tile_rows + 1) +
           static_cast<size_t>(tile_rows) * static_cast<size_t>(stride_of(width));
  }
  Tile(void* scratch, int64_t index, const AttentionRows& a) : stride(stride_of(a.width)) {
    most = static_cast<float*>(scratch) + static_cast<size_t>(tile_rows) * weights_stride +
           static_cast<size_t>(index) * floats(a.depth, a.width);
    sum = most + lanes;
    q = sum + tile_rows * lanes;
    context = q + a.depth * lanes;
  }
};

// Tiles of rows [begin, end), which differ in length by one at most.
struct Tiles {
  int64_t begin, rows, count;
  Tiles(int64_t first, int64_t end) : begin(first), rows(end - first), count(ceil_div(rows, int64_t{tile_rows})) {}
  int64_t at(int64_t i) const {
    const int64_t longer = rows % count;
    return begin + i * (rows / count) + (i < longer ? i : longer);
  }
};

template <int rows, int panel>
[[gnu::flatten]] void compute_scores(const float* q, const float* k, int depth, float* dst) {
  Vf sum[rows * panel];
  unroll<rows * panel>([&](int i) { sum[i] = zero(); });
  for (int l = 0; l < depth; ++l, q += lanes, k += panel * lanes) {
    Vf w[panel];
    unroll<panel>([&](int v) { w[v] = load(k + v * lanes); });
    unroll<rows>([&](int i) {
      const Vf x = set(q[i]);
      unroll<panel>([&](int v) { sum[i * panel + v] = fma(x, w[v], sum[i * panel + v]); });
    });
  }
  unroll<rows>(
      [&](int i) { unroll<panel>([&](int v) { store(dst + i * weights_stride + v * lanes, sum[i * panel + v]); }); });
}

// dst = dst * factors + weights * v
template <int rows, int panel>
[[gnu::flatten]] void compute_context(const float* weights, const float* v, int count, const float* factors, float* dst,
                                      int stride) {
  Vf sum[rows * panel];
  unroll<rows>([&](int i) {
    const Vf factor = set(factors[i]);
    unroll<panel>([&](int j) { sum[i * panel + j] = load(dst + i * stride + j * lanes) * factor; });
  });
  for (int l = 0; l < count; ++l, ++weights, v += panel * lanes) {
    Vf w[panel];
    unroll<panel>([&](int j) { w[j] = load(v + j * lanes); });
    unroll<rows>([&](int i) {
      const Vf x = set(weights[i * weights_stride]);
      unroll<panel>([&](int j) { sum[i * panel + j] = fma(x, w[j], sum[i * panel + j]); });
    });
  }
  unroll<rows>([&](int i) { unroll<panel>([&](int j) { store(dst + i * stride + j * lanes, sum[i * panel + j]); }); });
}

struct Table {
  void (*scores[panel_vectors + 1][tile_rows + 1])(const float*, const float*, int, float*) = {};
  void (*context[panel_vectors + 1][tile_rows + 1])(const float*, const float*, int, const float*, float*, int) = {};
};
constexpr Table make_table() {
  Table table;
  unroll<panel_vectors>([&](auto v) {
    unroll<tile_rows>([&](auto i) {
      table.scores[v + 1][i + 1] = compute_scores<i + 1, v + 1>;
      table.context[v + 1][i + 1] = compute_context<i + 1, v + 1>;
    });
  });
  return table;
}
constexpr Table table = make_table();

// Lane i: what op makes of the lanes of x[i].
template <class Op>
SN_INLINE Vf across(Vf (&x)[lanes], const Op& op) {
  transpose(x);
#pragma GCC unroll 4
  for (int width = lanes / 2; width > 0; width /= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < width; ++i) x[i] = op(x[i], x[i + width]);
  }
  return x[0];
}

// Keys of a step that count for a row.
struct Span {
  int begin, end;
};
inline Span keys_of(const AttentionRows& a, const AttentionKeys& keys, int64_t row) {
  const int64_t own = row % a.rows, i = own < a.last ? own : a.last;
  const int64_t begin = i - a.before - keys.first, end = i + a.after + 1 - keys.first;
  return {static_cast<int>(begin < 0            ? 0
                           : begin > keys.count ? keys.count
                                                : begin),
          static_cast<int>(end < 0            ? 0
                           : end > keys.count ? keys.count
                                              : end)};
}

// The cap and the mask are applied to a row's scores [begin, end).
inline void adjust(const AttentionRows& a, int64_t row, int64_t key, int begin, int end, float* scores) {
  if (a.softcap != 0) {
    const Vf cap = set(a.softcap), per = set(1 / a.softcap);
    for (int c = begin; c < end; c += lanes) store(scores + c, tanh(load(scores + c) * per) * cap);
  }
  if (a.mask == nullptr) return;
  const ptrdiff_t at = row / a.rows * a.mask_head + row % a.rows * a.mask_row + key;
  for (int c = begin; c < end; c += lanes) {
    const int n = end - c < lanes ? end - c : lanes;
    const Vf x = load(scores + c);
    if (a.mask_adds) {
      const float* mask = static_cast<const float*>(a.mask) + at + c;
      const Vf added = n < lanes ? load_n(mask, n) : load(mask);
      const bool drops = a.lowest_drops;
      store(scores + c, drops ? select(le(added, set(-__FLT_MAX__)), set(none), x + added) : x + added);
    } else {
      const uint8_t* mask = static_cast<const uint8_t*>(a.mask) + at + c;
      store(scores + c, select(eq(n < lanes ? load_n(mask, n) : load(mask), zero()), set(none), x));
    }
  }
}

// Scores become weights. `factors` is for what earlier keys have left.
inline void weigh(const AttentionRows& a, const AttentionKeys& keys, int64_t row, int rows, Span all, const Tile& tile,
                  float* weights, float* factors) {
  const int begin = all.begin / lanes * lanes, end = round_up(all.end, lanes);
  Vf top[lanes];
  for (int i = 0; i < lanes; ++i) top[i] = set(none);
  for (int i = 0; i < rows; ++i) {
    float* w = weights + i * weights_stride;
    const Span own = keys_of(a, keys, row + i);
    adjust(a, row + i, keys.first, begin, all.end, w);
    for (int c = begin; c < (own.begin < end ? own.begin : end); ++c) w[c] = none;
    for (int c = own.end > begin ? own.end : begin; c < end; ++c) w[c] = none;
    Vf most[2] = {set(none), set(none)};
    int c = begin;
    for (; c + 2 * lanes <= end; c += 2 * lanes) {
      most[0] = at_least(load(w + c), most[0]);
      most[1] = at_least(load(w + c + lanes), most[1]);
    }
    if (c < end) most[0] = at_least(load(w + c), most[0]);
    top[i] = max(most[0], most[1]);
  }
  const Vf before = load(tile.most);
  const Vf found = max(across(top, [](Vf x, Vf y) { return max(x, y); }), before);
  store(tile.most, found);
  // Where nothing counts yet there is nothing to subtract.
  const Vf base = select(eq(found, set(none)), zero(), found);
  constexpr float log2e = 1.44269504f;
  float bases[lanes];
  store(bases, base);
  store(factors, exp2((before - base) * set(log2e)));
  for (int i = 0; i < rows; ++i) {
    float* w = weights + i * weights_stride;
    const Vf off = set(bases[i]), scale = set(log2e);
    Vf sum[2] = {load(tile.sum + i * lanes) * set(factors[i]), zero()};
    int c = begin;
    for (; c + 2 * lanes <= end; c += 2 * lanes) {
      const Vf x = exp2((load(w + c) - off) * scale), y = exp2((load(w + c + lanes) - off) * scale);
      store(w + c, x);
      store(w + c + lanes, y);
      sum[0] = sum[0] + x;
      sum[1] = sum[1] + y;
    }
    if (c < end) {
      const Vf x = exp2((load(w + c) - off) * scale);
      store(w + c, x);
      sum[0] = sum[0] + x;
    }
    store(tile.sum + i * lanes, sum[0] + sum[1]);
  }
}

inline bool any_adds(const float* mask, int count) {
  int c = 0;
  for (; c + lanes <= count; c += lanes) {
    const Vf x = load(mask + c);
    if (any(lt(set(none), x)) || any(is_nan(x))) return true;
  }
  for (; c < count; ++c) {
    if (mask[c] != none) return true;
  }
  return false;
}
inline bool any_keeps(const uint8_t* mask, int count) {
  int c = 0;
  for (; c + 8 <= count; c += 8) {
    uint64_t bytes;
    __builtin_memcpy(&bytes, mask + c, sizeof bytes);
    if (bytes != 0) return true;
  }
  for (; c < count; ++c) {
    if (mask[c] != 0) return true;
  }
  return false;
}
inline bool counts(const AttentionRows& a, int64_t key, int count, int64_t begin, int64_t end) {
  if (a.mask == nullptr) return true;
  for (int64_t row = begin; row < end; ++row) {
    if (row != begin && a.mask_row == 0 && (a.mask_head == 0 || row % a.rows != 0)) continue;
    const ptrdiff_t at = row / a.rows * a.mask_head + row % a.rows * a.mask_row + key;
    const bool any = a.mask_adds ? any_adds(static_cast<const float*>(a.mask) + at, count)
                                 : any_keeps(static_cast<const uint8_t*>(a.mask) + at, count);
    if (any) return true;
  }
  return false;
}

inline void start(const AttentionRows& a, int64_t begin, int64_t end, void* scratch) {
  const Tiles tiles(begin, end);
  for (int64_t t = 0; t < tiles.count; ++t) {
    const Tile tile(scratch, t, a);
    const int64_t first = tiles.at(t), rows = tiles.at(t + 1) - first;
    store(tile.most, set(none));
    for (int64_t i = 0; i < tile_rows * lanes; i += lanes) store(tile.sum + i, zero());
    for (int64_t i = 0; a.sinks != nullptr && i < rows; ++i) {  // its weight is exp(0) so far
      tile.most[i] = a.sinks[(first + i) / a.rows];
      tile.sum[i * lanes] = 1;
    }
    for (int64_t i = 0; i < tile_rows * tile.stride; i += lanes) store(tile.context + i, zero());
    const Vf scale = set(a.scale);
    for (int l = 0; l < a.depth; l += lanes) {
      const int count = a.depth - l < lanes ? a.depth - l : lanes;
      Vf x[lanes];
      for (int i = 0; i < lanes; ++i) {
        if (i >= rows) {
          x[i] = zero();
          continue;
        }
        const int64_t row = first + i;
        x[i] = load_n(a.q + row / a.rows * a.q_head + row % a.rows * a.q_row + l, count) * scale;
      }
      transpose(x);
      for (int i = 0; i < count; ++i) store(tile.q + (l + i) * lanes, x[i]);
    }
  }
}

inline void step(const AttentionRows& a, const AttentionKeys& keys, int64_t begin, int64_t end, void* scratch) {
  const Tiles tiles(begin, end);
  auto* weights = static_cast<float*>(scratch);
  constexpr int panel = panel_vectors * lanes;
  for (int64_t t = 0; t < tiles.count; ++t) {
    const Tile tile(scratch, t, a);
    const int64_t first = tiles.at(t);
    const int rows = static_cast<int>(tiles.at(t + 1) - first);
    Span all{keys.count, 0};
    for (int i = 0; i < rows; ++i) {
      const Span own = keys_of(a, keys, first + i);
      if (own.begin >= own.end) continue;
      all.begin = own.begin < all.begin ? own.begin : all.begin;
      all.end = own.end > all.end ? own.end : all.end;
    }
    if (all.begin >= all.end) continue;
    const auto vectors_at = [](int index, int64_t count) {
      const int64_t left = ceil_div(count, int64_t{lanes}) - index * panel_vectors;
      return left < panel_vectors ? static_cast<int>(left) : panel_vectors;
    };
    for (int p = all.begin / panel; p * panel < all.end; ++p) {
      table.scores[vectors_at(p, keys.packed)][rows](tile.q, keys.k + static_cast<ptrdiff_t>(p) * panel * a.depth,
                                                     a.depth, weights + p * panel);
    }
    float factors[lanes];
    weigh(a, keys, first, rows, all, tile, weights, factors);
    for (int p = 0; p * panel < a.width; ++p) {
      const int vectors = vectors_at(p, a.width);
      const ptrdiff_t row = keys.v_first + all.begin;
      table.context[vectors][rows](weights + all.begin, keys.v + p * panel * keys.v_rows + row * vectors * lanes,
                                   all.end - all.begin, factors, tile.context + p * panel, tile.stride);
    }
  }
}

inline void finish(const AttentionRows& a, int64_t begin, int64_t end, void* scratch) {
  const Tiles tiles(begin, end);
  for (int64_t t = 0; t < tiles.count; ++t) {
    const Tile tile(scratch, t, a);
    const int64_t first = tiles.at(t), rows = tiles.at(t + 1) - first;
    Vf sums[lanes];
    for (int i = 0; i < lanes; ++i) sums[i] = i < rows ? load(tile.sum + i * lanes) : zero();
    const Vf total = across(sums, [](Vf x, Vf y) { return x + y; });
    float factors[lanes], totals[lanes];
    store(factors, set(1.0f) / total);
    store(totals, total);
    for (int i = 0; i < rows; ++i) {
      const int64_t row = first + i;
      float* dst = a.dst + row / a.rows * a.dst_head + row % a.rows * a.dst_row;
      const bool none_counts = totals[i] == 0 || (a.zero_nan && totals[i] != totals[i]);
      const Vf factor = set(factors[i]), nothing = set(a.nothing);
      for (int c = 0; c < a.width; c += lanes) {
        const int n = a.width - c < lanes ? a.width - c : lanes;
        store_n(dst + c, none_counts ? nothing : load(tile.context + i * tile.stride + c) * factor, n);
      }
    }
  }
}

inline size_t scratch_bytes(int64_t rows, int depth, int width) {
  const auto tiles = static_cast<size_t>(ceil_div(rows, int64_t{tile_rows}));
  return (static_cast<size_t>(tile_rows) * weights_stride + tiles * Tile::floats(depth, width)) * sizeof(float);
}

}  // namespace attention
}  // namespace softneuro::SN_ISA

namespace softneuro {

SN_KERNEL_TABLE(AttentionKernels, attention) = {
    .tile_rows = SN_ISA::attention::tile_rows,
    .scratch_bytes = SN_ISA::attention::scratch_bytes,
    .counts = SN_ISA::attention::counts,
    .start = SN_ISA::attention::start,
    .step = SN_ISA::attention::step,
    .finish = SN_ISA::attention::finish,
};

}  // namespace softneuro
