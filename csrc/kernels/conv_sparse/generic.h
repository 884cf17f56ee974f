// conv_sparse over Vf: a tile of positions by one or several output channels in registers.
#pragma once

#include "kernels/conv_sparse/conv_sparse.h"
#include "kernels/conv_sparse/windows.h"
#include "kernels/integers.h"
#include "kernels/store/rest.h"
#include "kernels/unroll.h"
#include "simd/hold.h"

namespace softneuro::SN_ISA {
namespace conv_sparse {

// Lambdas on arrays of sums are inlined: if one were called, the sums would be in memory.
#define SN_INLINED __attribute__((always_inline))

// Every multiply-add loads its vector, so that sums take as many registers as there are: the more of them, the less
// the loads of weights and offsets count.
constexpr int most_sums = registers >= 32 ? 28 : 12;
constexpr int max_rows = 4, max_columns = most_sums / max_rows;
// Channels that a small tile takes together, so that chains of sums hide the latency.
constexpr int channels_of(int positions) {
  const int fit = most_sums / positions;
  return fit >= 4 ? 4 : fit >= 2 ? 2 : 1;
}

// body(pointer, sum) for each vector of a tile but those of the last column, which go to body(pointer, sum, lanes
// used).
template <int rows, int columns, class T, class Body>
SN_INLINE void for_tile(T* p, ptrdiff_t stride, Vf* sum, int last, const Body& body) {
  unroll<rows>([&](auto r) SN_INLINED {
    p = hold(p);
    unroll<columns - 1>([&](auto c) SN_INLINED { body(p + c * lanes, sum[r * columns + c], lanes); });
    body(p + (columns - 1) * lanes, sum[r * columns + columns - 1], last);
    p += stride;
  });
}

// Adds a non-zero's products.
template <int rows, int columns>
SN_INLINE void add_products(const float* x, ptrdiff_t stride, Vf weight, Vf* sum) {
  unroll<rows>([&](auto r) SN_INLINED {
    x = hold(x);
    unroll<columns>([&](auto c) SN_INLINED {
      Vf& s = sum[r * columns + c];
      s = fma(load(x + c * lanes), weight, s);
    });
    x += stride;
  });
}

SN_INLINE Vf load_part(const float* p, int used) { return used == lanes ? load(p) : load_n(p, used); }

template <int rows, int columns, int count>
[[gnu::flatten]] void compute_tile(const ConvSparseArgs& t, const SparseRows& weights, int index, const float* src,
                                   ptrdiff_t at, int last) {
  constexpr int n = rows * columns;
  Vf sum[count * n];
  const float* value[count];
  const uint16_t* code[count];
  int length[count];
  unroll<count>([&](auto k) SN_INLINED {
    const int begin = weights.starts[index + k];
    value[k] = weights.values + begin;
    code[k] = weights.codes + begin;
    length[k] = weights.starts[index + k + 1] - begin;
    const int channel = weights.channels[index + k];
    if (t.first) {
      const Vf start = t.bias != nullptr ? set(t.bias[channel]) : zero();
      unroll<n>([&](auto i) SN_INLINED { sum[k * n + i] = start; });
    } else {
      for_tile<rows, columns>(t.dst + channel * t.dst_channel + at, t.dst_row, sum + k * n, last,
                              [](const float* p, Vf& x, int used) SN_INLINED { x = load_part(p, used); });
    }
  });
  const int32_t* offsets = t.offsets;
  const ptrdiff_t src_row = t.src_row;
  int together = length[0];
  unroll<count>([&](auto k) SN_INLINED { together = length[k] < together ? length[k] : together; });
  for (int i = 0; i < together; ++i) {
    unroll<count>([&](auto k) SN_INLINED {
      add_products<rows, columns>(src + offsets[code[k][i]], src_row, set(value[k][i]), sum + k * n);
    });
  }
  if constexpr (count > 1) {
    unroll<count>([&](auto k) SN_INLINED {
      for (int i = together; i < length[k]; ++i) {
        add_products<rows, columns>(src + offsets[code[k][i]], src_row, set(value[k][i]), sum + k * n);
      }
    });
  }
  const ClampBounds bounds = t.final ? clamp_bounds(t.activation) : ClampBounds();
  const Vf lo = set(bounds.lo), hi = set(bounds.hi);
  unroll<count>([&](auto k) SN_INLINED {
    const ptrdiff_t to = weights.channels[index + k] * t.dst_channel + at;
    if (t.final && t.residual != nullptr) {
      for_tile<rows, columns>(t.residual + to, t.dst_row, sum + k * n, last,
                              [](const float* p, Vf& x, int used) SN_INLINED { x = x + load_part(p, used); });
    }
    for_tile<rows, columns>(t.dst + to, t.dst_row, sum + k * n, last, [&](float* p, Vf& x, int used) SN_INLINED {
      x = clamp(x, lo, hi);
      if (t.stream) return stream(p, x);
      used == lanes ? store(p, x) : store_n(p, x, used);
    });
    if (!t.final || is_clamp(t.activation.kind)) return;
    for (int r = 0; r < rows; ++r) {
      float* row = t.dst + to + r * t.dst_row;
      activate_row(row, row, static_cast<size_t>((columns - 1) * lanes + last), t.activation);
    }
  });
}

using ComputeTile = void (*)(const ConvSparseArgs&, const SparseRows&, int index, const float* src, ptrdiff_t at,
                             int last);
struct TileTable {
  ComputeTile several[max_rows + 1][max_columns + 1] = {}, one[max_rows + 1][max_columns + 1] = {};
};
constexpr TileTable tile_table() {
  TileTable table;
  unroll<max_rows>([&](auto r) {
    unroll<max_columns>([&](auto c) {
      table.several[r + 1][c + 1] = compute_tile<r + 1, c + 1, channels_of((r + 1) * (c + 1))>;
      table.one[r + 1][c + 1] = compute_tile<r + 1, c + 1, 1>;
    });
  });
  return table;
}
constexpr TileTable tiles = tile_table();

// Parts of nearly equal length.
struct Parts {
  int count, each, longer;
  SN_INLINE Parts(int n, int most) : count(ceil_div(n, most)), each(n / count), longer(n % count) {}
  SN_INLINE int length(int i) const { return each + (i < longer ? 1 : 0); }
};

inline void run(const ConvSparseArgs& args) {
  if (args.rows <= 0 || args.vectors <= 0) return;
  const Parts down(args.rows, max_rows), across(args.vectors, max_columns);
  int y = 0;
  for (int i = 0; i < down.count; y += down.length(i++)) {
    int x = 0;
    for (int j = 0; j < across.count; x += across.length(j++)) {
      const int rows = down.length(i), columns = across.length(j), several = channels_of(rows * columns);
      const float* src = args.src + y * args.src_row + x * lanes;
      const ptrdiff_t at = y * args.dst_row + x * lanes;
      const int last = x + columns == args.vectors ? args.last : lanes;
      for (int list = 0; list < args.lists; ++list) {
        const SparseRows& weights = args.weights[list];
        int k = 0;
        for (; k + several <= weights.count; k += several) {
          tiles.several[rows][columns](args, weights, k, src, at, last);
        }
        for (; k < weights.count; ++k) tiles.one[rows][columns](args, weights, k, src, at, last);
      }
    }
  }
}

}  // namespace conv_sparse
}  // namespace softneuro::SN_ISA

namespace softneuro {

SN_KERNEL_TABLE(ConvSparseKernels, conv_sparse) = {
    .lanes = SN_ISA::lanes,
    .run = SN_ISA::conv_sparse::run,
    .copy_plane = SN_ISA::conv_sparse::copy_plane,
    .copy_tiles = SN_ISA::conv_sparse::copy_tiles,
};

}  // namespace softneuro
