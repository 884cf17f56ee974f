// gemm over Vf: a tile of rows by a panel of columns in registers. Rows of a are packed tile by tile as [l][row of
// tile], so that the broadcasts of a step are neighbours; few rows (batch 1) are read in place. Contract: gemm.h.
#pragma once

#include "kernels/gemm/gemm.h"
#include "kernels/integers.h"
#include "kernels/store/rest.h"
#include "kernels/store/tiles.h"
#include "kernels/unroll.h"

namespace softneuro::SN_ISA {
namespace gemm {

constexpr int max_panel = 3;
constexpr int most_sums = registers >= 32 ? 28 : 12;  // of a tile
// A packed step of a is one vector wide.
constexpr int max_tile(int panel) {
  const int rows = most_sums / panel;
  return rows < lanes ? rows : lanes;
}
// Up to so many rows are read in place, each l in one of four sets of sums to hide the latency.
constexpr int few_rows = 3;
// Floats from the columns in use to those being fetched, and steps of the packed rows.
constexpr int ahead = 2048, rows_ahead = 16;

struct Tile : RowTile<> {
  const float* a;      // packed, or row 0 in place
  ptrdiff_t a_stride;  // in place only
  const float* b;
  int k;
  const float* next;  // of b, what later tiles want, to be in L2 by then
  int fetch;          // floats of it for each product, of which one line is fetched: a loop or a test here costs 4 %
};

template <int rows, int panel>
[[gnu::flatten]] void compute_packed(const Tile& t) {
  Vf sum[rows * panel];
  unroll<rows * panel>([&](int i) { sum[i] = zero(); });
  const float* a = t.a;
  const float* b = t.b;
  const float* next = t.next;
  for (int l = 0; l < t.k; ++l, a += lanes, b += panel * lanes, next += t.fetch) {
    Vf w[panel];
    unroll<panel>([&](int v) {
      w[v] = load(b + v * lanes);
      prefetch(b + v * lanes + ahead);
    });
    prefetch_l2(next);
    prefetch(a + rows_ahead * lanes);  // in L3 where the columns have driven them out of L2
    unroll<rows>([&](int i) {
      const Vf x = set(a[i]);
      unroll<panel>([&](int v) { sum[i * panel + v] = fma(x, w[v], sum[i * panel + v]); });
    });
  }
  finish_rows<rows, panel>(t, sum);
}

template <int rows, int panel>
[[gnu::flatten]] void compute_in_place(const Tile& t) {
  constexpr int sets = rows * panel <= 2 ? 4 : 2, count = rows * panel;
  Vf sum[sets * count];
  unroll<sets * count>([&](int i) { sum[i] = zero(); });
  const float* b = t.b;
  int l = 0;
  const auto step = [&](auto s) {
    unroll<panel>([&](int v) {
      const Vf w = load(b + v * lanes);
      prefetch(b + v * lanes + ahead);
      unroll<rows>([&](int i) {
        Vf& x = sum[s * count + i * panel + v];
        x = fma(set(t.a[i * t.a_stride + l]), w, x);
      });
    });
    b += panel * lanes;
    ++l;
  };
  while (l + sets <= t.k) unroll<sets>(step);
  while (l < t.k) step(Index<0>{});
  unroll<sets - 1>([&](int s) { unroll<count>([&](int i) { sum[i] = sum[i] + sum[(s + 1) * count + i]; }); });
  finish_rows<rows, panel>(t, sum);
}

using Compute = void (*)(const Tile&);
struct Table {
  Compute packed[max_panel + 1][lanes + 1] = {};
  Compute in_place[max_panel + 1][few_rows + 1] = {};
};
constexpr Table make_table() {
  Table table;
  unroll<max_panel>([&](auto v) {
    constexpr int panel = v + 1;
    unroll<max_tile(panel)>([&](auto i) { table.packed[panel][i + 1] = compute_packed<i + 1, panel>; });
    unroll<few_rows>([&](auto i) { table.in_place[panel][i + 1] = compute_in_place<i + 1, panel>; });
  });
  return table;
}
constexpr Table table = make_table();

// a[rows][k] to [k][lanes], zero past the rows.
inline void pack_tile(const float* a, ptrdiff_t stride, int rows, int k, float* packed) {
  for (int l = 0; l < k; l += lanes) {
    const int count = k - l < lanes ? k - l : lanes;
    Vf x[lanes];
    unroll<lanes>([&](int i) {
      x[i] = i >= rows ? zero() : count == lanes ? load(a + i * stride + l) : load_n(a + i * stride + l, count);
    });
    transpose(x);
    unroll<lanes>([&](int i) {
      if (i < count) store(packed + (l + i) * lanes, x[i]);
    });
  }
}

inline void pack_b(int n, int k, int panel, const float* b, ptrdiff_t stride, bool transposed, int panel_begin,
                   int panel_end, float* packed) {
  const int last = ceil_div(n, lanes);
  for (int first = panel_begin * panel; first < panel_end * panel && first < last; first += panel) {
    const int vectors = last - first < panel ? last - first : panel;
    for (int v = 0; v < vectors; ++v) {
      const int j = (first + v) * lanes, columns = n - j < lanes ? n - j : lanes;
      float* to = packed + v * lanes;
      for (int l = 0; l < k; l += lanes) {
        const int count = k - l < lanes ? k - l : lanes;
        Vf x[lanes];
        if (transposed) {
          unroll<lanes>([&](int i) { x[i] = i < columns ? load_n(b + (j + i) * stride + l, count) : zero(); });
          transpose(x);
        } else {
          unroll<lanes>([&](int i) { x[i] = i < count ? load_n(b + (l + i) * stride + j, columns) : zero(); });
        }
        unroll<lanes>([&](int i) {
          if (i < count) store(to + static_cast<size_t>(l + i) * vectors * lanes, x[i]);
        });
      }
    }
    packed += static_cast<size_t>(vectors) * lanes * k;
  }
}

// Rows of one row block and one k block: where they are, and where packed if they are.
struct Block {
  int row_begin, row_end, tiles;
  int l, k;
  const float* packed;  // null: few rows, read in place
  // Tile i starts at row begin(i); lengths differ by one at most.
  int begin(int i) const {
    const int rows = row_end - row_begin;
    const int longer = rows % tiles;
    return row_begin + i * (rows / tiles) + (i < longer ? i : longer);
  }
};

inline void compute_panel(const GemmArgs& args, const Block& block, int index, bool last) {
  const int first = index * args.tiling.panel, vectors = ceil_div(args.n, lanes) - first;
  const int panel = vectors < args.tiling.panel ? vectors : args.tiling.panel;
  const int column = first * lanes;
  const Epilogue& epilogue = args.epilogue;
  const bool floats = epilogue.is_float32();
  const float* residual = floats ? epilogue.residual.f32() : nullptr;
  alignas(64) float sums[most_sums * lanes];  // of a tile that store_rows makes dst of
  Tile t;
  t.a_stride = args.a_stride;
  t.b = args.b + static_cast<size_t>(column) * args.k + static_cast<size_t>(block.l) * panel * lanes;
  t.k = block.k;
  t.stride = floats ? args.dst_stride : panel * lanes;
  t.bias_per_row = args.bias_per_row;
  const int columns = args.n - column < panel * lanes ? args.n - column : panel * lanes;
  t.columns = floats ? columns - (panel - 1) * lanes : lanes;
  t.first = block.l == 0 && !args.accumulate;
  t.last = floats && block.l + block.k == args.k;
  t.bounds = clamp_bounds(epilogue.activation);
  // Together the tiles fetch the next panel, once: it arrives at an even rate and not all during the next first tile.
  t.next = t.b + static_cast<size_t>(panel) * lanes * args.k;
  t.fetch = last ? 0 : ceil_div(panel * lanes, block.tiles);
  for (int i = 0; i < block.tiles; ++i) {
    const int row = block.begin(i), rows = block.begin(i + 1) - row;
    const ptrdiff_t at = row * args.dst_stride + column;
    const int term = args.bias_per_row ? row : column;
    t.dst = floats ? static_cast<float*>(args.dst) + at : sums;
    t.residual = residual != nullptr ? residual + at : nullptr;
    t.bias = epilogue.bias != nullptr ? epilogue.bias + term : nullptr;
    if (block.packed != nullptr) {
      t.a = block.packed + static_cast<size_t>(i) * block.k * lanes;
      table.packed[panel][rows](t);
      t.next += static_cast<size_t>(block.k) * t.fetch;
    } else {
      t.a = args.a + row * args.a_stride + block.l;
      table.in_place[panel][rows](t);
    }
    if (!floats) {
      store_rows({.epilogue = epilogue.from(term, at),
                  .per_row = args.bias_per_row,
                  .sums = sums,
                  .sums_stride = t.stride,
                  .dst = element_at(args.dst, epilogue.dst.type, at),
                  .stride = args.dst_stride,
                  .rows = rows,
                  .columns = columns});
    } else if (t.last && !is_clamp(epilogue.activation.kind)) {
      for (int j = 0; j < rows; ++j) {
        float* out = t.dst + j * args.dst_stride;
        activate_row(out, out, static_cast<size_t>(columns), epilogue.activation);
      }
    }
  }
}

inline size_t scratch_bytes(int m, int k, const GemmTiling& tiling) {
  const int rows = tiling.row_block < m ? tiling.row_block : m, k_block = tiling.k_block < k ? tiling.k_block : k;
  // Never nothing, as run takes a null for rows read in place.
  return ceil_div(rows, max_tile(tiling.panel)) * static_cast<size_t>(k_block > 0 ? k_block : 1) * lanes *
         sizeof(float);
}

inline void run(const GemmArgs& args, int panel_begin, int panel_end, int row_begin, int row_end, void* scratch) {
  assert(args.epilogue.is_float32() || (!args.accumulate && args.tiling.k_block >= args.k));
  float* packed = static_cast<float*>(scratch);
  const int row_step = args.tiling.row_block;
  for (int row = row_begin; row < row_end; row += row_step) {
    Block block;
    block.row_begin = row;
    block.row_end = row_end - row < row_step ? row_end : row + row_step;
    const bool few = block.row_end - row <= few_rows;
    block.tiles = few ? 1 : ceil_div(block.row_end - row, max_tile(args.tiling.panel));
    block.packed = few ? nullptr : packed;
    // In place there is nothing to keep small, and the weights stream in one go.
    const int k_blocks = few || args.k == 0 || !args.epilogue.is_float32() ? 1 : ceil_div(args.k, args.tiling.k_block);
    const int k_step = args.k > 0 ? ceil_div(args.k, k_blocks) : 1;
    // Without products (k = 0) one empty block still writes dst.
    for (block.l = 0; block.l == 0 || block.l < args.k; block.l += k_step) {
      block.k = args.k - block.l < k_step ? args.k - block.l : k_step;
      for (int i = 0; !few && i < block.tiles; ++i) {
        pack_tile(args.a + block.begin(i) * args.a_stride + block.l, args.a_stride, block.begin(i + 1) - block.begin(i),
                  block.k, packed + static_cast<size_t>(i) * block.k * lanes);
      }
      for (int index = panel_begin; index < panel_end; ++index) {
        compute_panel(args, block, index, index + 1 == panel_end);
      }
    }
  }
}

}  // namespace gemm
}  // namespace softneuro::SN_ISA

namespace softneuro {

SN_KERNEL_TABLE(GemmKernels, gemm) = {
    .lanes = SN_ISA::lanes,
    .max_panel = SN_ISA::gemm::max_panel,
    .max_tile = {0, SN_ISA::gemm::max_tile(1), SN_ISA::gemm::max_tile(2), SN_ISA::gemm::max_tile(3)},
    .pack_b = SN_ISA::gemm::pack_b,
    .scratch_bytes = SN_ISA::gemm::scratch_bytes,
    .run = SN_ISA::gemm::run,
};

}  // namespace softneuro
