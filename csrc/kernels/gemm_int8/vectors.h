// Products of bytes in vectors: a tile of rows by a few vectors of columns in registers. Rows of a are read in place.
#pragma once

#include "kernels/gemm_int8/finish.h"
#include "kernels/integers.h"
#include "simd/dot4.h"

namespace softneuro::SN_ISA {
namespace gemm_int8 {

constexpr int panel_vectors = GemmInt8::block / lanes;
constexpr bool is_pair = sizeof(Dot4<false>::Weights) > sizeof(Vi);  // levels that keep each byte twice as wide
constexpr int most_sums = lanes == 16 ? 24 : is_pair ? 8 : 12;
constexpr int most_rows(int vectors) { return most_sums / vectors < 14 ? most_sums / vectors : 14; }

constexpr int group_bytes = GemmInt8::block * GemmInt8::group;
// Groups of k at a time: what counts them takes ports that products want.
constexpr int steps = 4;
constexpr int line = 64;

struct Tile {
  const uint8_t* a;
  ptrdiff_t a_stride;
  const int8_t* b;
  size_t panel;  // bytes of b
  int groups;    // of k
  const int32_t* start;
  const int32_t *group, *group_end;  // those that count, of one panel; null: all
  const int8_t* next;                // weights that later tiles want, to be in L2 by then
  int32_t* sums;                     // [rows][vectors * lanes]
};

template <int rows, int vectors, bool narrow>
[[gnu::flatten]] void compute(const Tile& t) {
  using Dot = Dot4<narrow>;
  constexpr int near = 3;  // rows that one address and the stride reach
  Vi sum[rows * vectors];
  unroll<rows * vectors>([&](int i) { sum[i] = load(t.start + i % vectors * lanes); });
  const ptrdiff_t stride = t.a_stride;
  const uint8_t* a[ceil_div(rows, near)];
  unroll<ceil_div(rows, near)>([&](int i) { a[i] = t.a + i * near * stride; });
  const int8_t* b[ceil_div(vectors, panel_vectors)];
  unroll<ceil_div(vectors, panel_vectors)>([&](int v) { b[v] = t.b + v * t.panel; });
  const auto step = [&](int s) {
    typename Dot::Weights w[vectors];
    unroll<vectors>(
        [&](int v) { w[v] = Dot::load(b[v / panel_vectors] + s * group_bytes + v % panel_vectors * lanes * 4); });
    unroll<rows>([&](int i) {
      const auto x = Dot::spread(a[i / near] + i % near * stride + s * GemmInt8::group);
      unroll<vectors>([&](int v) { sum[i * vectors + v] = Dot::add(sum[i * vectors + v], x, w[v]); });
    });
  };
  const auto advance = [&](int groups) {
    unroll<ceil_div(rows, near)>([&](int i) { a[i] += groups * GemmInt8::group; });
    unroll<ceil_div(vectors, panel_vectors)>([&](int v) { b[v] += groups * group_bytes; });
  };
  const int8_t* next = t.next;
  int l = t.groups;
  for (; l >= steps; l -= steps, next += line) {
    prefetch_l2(reinterpret_cast<const float*>(next));
    unroll<steps>(step);
    advance(steps);
  }
  for (; l > 0; --l) step(Index<0>{}), advance(1);
  unroll<rows * vectors>([&](int i) { store(t.sums + i * lanes, sum[i]); });
}

// Computes those groups of one panel that are not zeros alone.
template <int rows, int vectors, bool narrow>
[[gnu::flatten]] void compute_listed(const Tile& t) {
  using Dot = Dot4<narrow>;
  Vi sum[rows * vectors];
  unroll<rows * vectors>([&](int i) { sum[i] = load(t.start + i % vectors * lanes); });
  const ptrdiff_t stride = t.a_stride;
  for (const int32_t* group = t.group; group < t.group_end; ++group) {
    const int8_t* const b = t.b + static_cast<ptrdiff_t>(*group) * group_bytes;
    typename Dot::Weights w[vectors];
    unroll<vectors>([&](int v) { w[v] = Dot::load(b + v * lanes * 4); });
    const uint8_t* a = t.a + static_cast<ptrdiff_t>(*group) * GemmInt8::group;
    unroll<rows>([&](int i) {
      const auto x = Dot::spread(a);
      unroll<vectors>([&](int v) { sum[i * vectors + v] = Dot::add(sum[i * vectors + v], x, w[v]); });
      a += stride;
    });
  }
  unroll<rows * vectors>([&](int i) { store(t.sums + i * lanes, sum[i]); });
}

using Compute = void (*)(const Tile&);
struct Table {
  Compute of[most_vectors + 1][15] = {};
  Compute listed[panel_vectors + 1][15] = {};
};
template <bool narrow>
constexpr Table make_table() {
  Table table;
  unroll<most_vectors>([&](auto v) {
    unroll<most_rows(v + 1)>([&](auto i) { table.of[v + 1][i + 1] = compute<i + 1, v + 1, narrow>; });
  });
  unroll<panel_vectors>([&](auto v) {
    unroll<most_rows(v + 1)>([&](auto i) { table.listed[v + 1][i + 1] = compute_listed<i + 1, v + 1, narrow>; });
  });
  return table;
}
template <bool narrow>
constexpr Table table = make_table<narrow>();

// Vectors of a pass that has so many rows, whole panels.
constexpr int pass_vectors(int rows) {
  return lanes == 16 ? 4 : rows <= most_rows(most_vectors) ? most_vectors : panel_vectors;
}

// Rows whose bytes of a stay in the nearer caches while all panels pass.
inline int block_rows(int k) {
  constexpr int bytes = 512 << 10, least = 48;
  const int rows = bytes / (k > 0 ? k : 1);
  return rows < least ? least : rows;
}

SN_INLINE void run_panels(const GemmInt8& g, int panel_begin, int panel_end, int row_begin, int row_end) {
  const Table& tiles = dot4_likes_narrow && g.narrow ? table<dot4_likes_narrow> : table<false>;
  const bool listed = g.groups != nullptr;
  const Compute(*of)[15] = listed ? tiles.listed : tiles.of;
  const int end = panel_end * GemmInt8::block < g.n ? panel_end * GemmInt8::block : g.n;
  alignas(64) int32_t sums[2 * most_sums * lanes];
  Finisher finisher(g, sums, most_sums * lanes);
  Tile t;
  t.a_stride = g.a_stride;
  t.panel = static_cast<size_t>(g.k) * GemmInt8::block;
  t.groups = g.k / GemmInt8::group;
  const int most = block_rows(g.k);
  for (int row = row_begin; row < row_end; row += most) {
    const int rows = row_end - row < most ? row_end - row : most;
    const int step = listed ? GemmInt8::block : pass_vectors(rows) * lanes;
    for (int column = panel_begin * GemmInt8::block; column < end; column += step) {
      const int columns = end - column < step ? end - column : step, vectors = ceil_div(columns, lanes);
      const int tiles = ceil_div(rows, most_rows(vectors)), each = rows / tiles, longer = rows % tiles;
      t.b = g.b + static_cast<size_t>(column) * g.k;
      t.start = g.start + column;
      t.next = t.b + static_cast<size_t>(step) * g.k;
      if (listed) {
        const int32_t* const begin = g.group_starts + column / GemmInt8::block;
        t.group = g.groups + begin[0], t.group_end = g.groups + begin[1];
      }
      int first = row;
      for (int i = 0; i < tiles; ++i) {
        const int count = each + (i < longer);
        t.a = g.a + first * g.a_stride;
        t.sums = finisher.next();
        of[vectors][count](t);
        finisher.add({t.sums, vectors * lanes, first, count, column, columns});
        first += count;
        t.next += static_cast<size_t>(t.groups / steps) * line;
      }
    }
  }
  finisher.finish();
}

}  // namespace gemm_int8
}  // namespace softneuro::SN_ISA
