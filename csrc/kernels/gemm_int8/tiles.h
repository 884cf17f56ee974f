// Products of bytes in AMX's tiles: up to two tiles of rows by two panels of columns at a time.
#pragma once

#include "kernels/gemm_int8/vectors.h"

namespace softneuro::SN_ISA {
namespace gemm_int8 {

constexpr int tile_rows = 16, tile_bytes = 64, tile_groups = tile_bytes / GemmInt8::group;
// Fewer rows are faster in vectors.
constexpr int least_rows = 2;

// Lines of later weights that are fetched in a step.
constexpr int next_lines = 2;

// Eight tiles: 0 ... 3 are sums, tile 2 * i + j of the i-th tile of rows and the j-th panel. Rows are in 4 and 5,
// weights in 6 and 7. They are a thread's while one of these lives.
class Tiles {
 public:
  // Rows, and steps of `groups` groups.
  SN_INLINE Tiles(int rows, int groups) {
    struct alignas(64) {
      uint8_t palette = 1, start_row = 0, reserved[14] = {};
      uint16_t bytes[16] = {};
      uint8_t rows[16] = {};
    } shape;
    const auto set = [&](int tile, int height, int width) {
      shape.rows[tile] = static_cast<uint8_t>(height), shape.bytes[tile] = static_cast<uint16_t>(width);
    };
    for (int i = 0; i < 4; ++i) set(i, rows, tile_bytes);
    for (int i = 4; i < 6; ++i) set(i, rows, groups * GemmInt8::group);
    for (int i = 6; i < 8; ++i) set(i, groups, tile_bytes);
    __asm__ volatile("ldtilecfg %0" : : "m"(shape));
  }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;
  SN_INLINE ~Tiles() { __asm__ volatile("tilerelease"); }

  // stride: bytes from row to row, 0 for the same row all over.
  template <int tile>
  SN_INLINE void load(const void* from, ptrdiff_t stride) {
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(tile) : "memory");
  }
  template <int tile>
  SN_INLINE void store(int32_t* to, ptrdiff_t stride) {
    __asm__ volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(stride), "i"(tile) : "memory");
  }
  template <int sum, int rows, int weights>
  SN_INLINE void multiply() {
    __asm__ volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(sum), "i"(rows), "i"(weights));
  }
};

// How k is cut into tiles: `whole` steps of `groups`; if there are groups left, then a last step of whole tiles that
// ends with them. What it has in common with the step before is zero in copied rows.
struct Steps {
  int groups, whole, left;

  SN_INLINE explicit Steps(int k) {
    const int all = k / GemmInt8::group, fewest = ceil_div(all, tile_groups);
    groups = fewest > 0 ? all / fewest : 1, whole = fewest, left = 0;
    if (groups * fewest == all) return;
    groups = tile_groups, whole = all / tile_groups, left = all % tile_groups;
  }
};

struct Products {
  const uint8_t* rows[2];  // where each tile of rows begins
  ptrdiff_t stride;
  const uint8_t* last;  // the copied rows of the last step, tile by tile; null: none
  const int8_t* b;
  size_t panel;
  const int8_t* next;  // weights that later tiles want, to be in L2 by then
  int groups, whole;
  size_t last_b;  // where the last step's weights begin
  const int32_t* start;
  int32_t* sums;   // [m * tile_rows][n * block]
  int second_row;  // of sums: where the second tile begins, which may share rows with the first
};

template <int m, int n>
inline void multiply(Tiles& tiles, const Products& p) {
  unroll<m>([&](auto i) __attribute__((always_inline)) {
    unroll<n>([&](auto j) __attribute__((always_inline)) { tiles.load<2 * i + j>(p.start + j * GemmInt8::block, 0); });
  });
  const auto step = [&](const uint8_t* first, const uint8_t* second, ptrdiff_t stride, const int8_t* b)
                        __attribute__((always_inline)) {
                          tiles.load<4>(first, stride);
                          tiles.load<6>(b, tile_bytes);
                          tiles.multiply<0, 4, 6>();
                          if constexpr (n == 2) tiles.load<7>(b + p.panel, tile_bytes), tiles.multiply<1, 4, 7>();
                          if constexpr (m == 2) tiles.load<5>(second, stride), tiles.multiply<2, 5, 6>();
                          if constexpr (m == 2 && n == 2) tiles.multiply<3, 5, 7>();
                        };
  const uint8_t *first = p.rows[0], *second = p.rows[1];
  const int8_t* b = p.b;
  const int bytes = p.groups * GemmInt8::group;
  const int8_t* next = p.next;
  for (int l = 0; l < p.whole; ++l, first += bytes, second += bytes, b += p.groups * tile_bytes) {
    for (int i = 0; i < next_lines; ++i, next += line) prefetch_l2(reinterpret_cast<const float*>(next));
    step(first, second, p.stride, b);
  }
  if (p.last != nullptr) step(p.last, p.last + tile_rows * tile_bytes, tile_bytes, p.b + p.last_b);
  constexpr ptrdiff_t row = n * GemmInt8::block;
  unroll<m>([&](auto i) __attribute__((always_inline)) {
    unroll<n>([&](auto j) __attribute__((always_inline)) {
      tiles.store<2 * i + j>(p.sums + i * p.second_row * row + j * GemmInt8::block, row * 4);
    });
  });
}

// Rows whose bytes of a stay in the nearer caches while all panels pass: whole pairs of tiles.
inline int tile_block_rows(int k) {
  constexpr int bytes = 512 << 10, least = 2 * tile_rows, most = 1024;
  const int rows = bytes / (k > 0 ? k : 1) / (2 * tile_rows) * (2 * tile_rows);
  return rows < least ? least : rows > most ? most : rows;
}

inline size_t scratch_bytes(const GemmInt8& g) {
  if (Steps(g.k).left == 0) return 0;
  const int most = tile_block_rows(g.k), rows = g.m < most ? g.m : most;
  return static_cast<size_t>(round_up(rows, tile_rows)) * tile_bytes;
}

// The last step's bytes of a tile's rows: those before belong to other steps.
inline void copy_last(const GemmInt8& g, int row, int rows, int left, uint8_t* to) {
  const __mmask64 own = ~uint64_t{0} << (tile_bytes - left * GemmInt8::group);
  const uint8_t* from = g.a + row * g.a_stride + g.k - tile_bytes;
  for (int i = 0; i < rows; ++i, from += g.a_stride, to += tile_bytes) {
    _mm512_store_si512(to, _mm512_maskz_loadu_epi8(own, from));
  }
}

inline void run_tiles(const GemmInt8& g, int panel_begin, int panel_end, int row_begin, int row_end,
                      uint8_t* last_rows) {
  const Steps steps(g.k);
  const int height = g.m < tile_rows ? g.m : tile_rows;
  Tiles tiles(height, steps.groups);
  constexpr int most_tile_sums = 2 * tile_rows * 2 * GemmInt8::block;
  alignas(64) int32_t sums[2 * most_tile_sums];
  Finisher finisher(g, sums, most_tile_sums);
  Products p;
  p.stride = g.a_stride;
  p.panel = static_cast<size_t>(g.k) * GemmInt8::block;
  p.groups = steps.groups, p.whole = steps.whole;
  p.last_b = p.panel - static_cast<size_t>(steps.groups) * tile_bytes;
  // A last tile reaches back for its rows, as none may be read that are not there.
  const auto begin_of = [&](int row) { return row + height <= g.m ? row : g.m - height; };
  const int most = tile_block_rows(g.k);
  for (int row = row_begin; row < row_end; row += most) {
    const int rows = row_end - row < most ? row_end - row : most;
    for (int i = 0; steps.left > 0 && i < rows; i += tile_rows) {
      copy_last(g, begin_of(row + i), height, steps.left, last_rows + static_cast<ptrdiff_t>(i) * tile_bytes);
    }
    for (int panel = panel_begin; panel < panel_end; panel += 2) {
      const int column = panel * GemmInt8::block, n = panel_end - panel < 2 ? 1 : 2;
      const int columns = g.n - column < n * GemmInt8::block ? g.n - column : n * GemmInt8::block;
      p.b = g.b + static_cast<size_t>(column) * g.k;
      p.start = g.start + column;
      p.next = p.b + 2 * p.panel;
      for (int i = 0; i < rows; i += 2 * tile_rows) {
        const int here = rows - i < 2 * tile_rows ? rows - i : 2 * tile_rows, m = ceil_div(here, tile_rows);
        const int begin = begin_of(row + i), second = m == 2 ? begin_of(row + i + tile_rows) : begin;
        p.rows[0] = g.a + begin * g.a_stride, p.rows[1] = g.a + second * g.a_stride;
        p.second_row = second - begin;
        p.sums = finisher.next();
        p.last = steps.left > 0 ? last_rows + static_cast<ptrdiff_t>(i) * tile_bytes : nullptr;
        const auto chosen = m == 2   ? (n == 2 ? multiply<2, 2> : multiply<2, 1>)
                            : n == 2 ? multiply<1, 2>
                                     : multiply<1, 1>;
        chosen(tiles, p);
        p.next += p.whole * next_lines * line;
        finisher.add(
            {p.sums + (row + i - begin) * n * GemmInt8::block, n * GemmInt8::block, row + i, here, column, columns});
      }
    }
  }
  finisher.finish();
}

inline void run(const GemmInt8& g, int panel_begin, int panel_end, int row_begin, int row_end, void* scratch) {
  if (row_end - row_begin < least_rows || g.k == 0) return run_panels(g, panel_begin, panel_end, row_begin, row_end);
  run_tiles(g, panel_begin, panel_end, row_begin, row_end, static_cast<uint8_t*>(scratch));
}

}  // namespace gemm_int8
}  // namespace softneuro::SN_ISA
