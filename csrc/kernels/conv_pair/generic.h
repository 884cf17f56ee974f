// conv_pair over Vf. Contract: conv_pair.h.
#pragma once

#include "kernels/conv_pair/conv_pair.h"
#include "kernels/integers.h"
#include "kernels/store/rest.h"
#include "kernels/unroll.h"

namespace softneuro::SN_ISA {
namespace conv_pair {

constexpr int max_vectors = registers >= 32 ? 12 : 6;

// Vectors of a plane that are summed together.
struct Chunk {
  const float* src;  // of the group's first channel
  ptrdiff_t src_at[max_vectors], tile_at[max_vectors];
};

template <int vectors>
[[gnu::flatten]] void gather(const ConvPairArgs& a, int m, const int* taps, const Chunk& chunk, float* tile) {
  Vf sum[vectors];
  const Vf start = a.bias != nullptr ? set(a.bias[m]) : zero();
  unroll<vectors>([&](auto v) { sum[v] = start; });
  for (int64_t j = a.first.begin[m]; j < a.first.begin[m + 1]; ++j) {
    const float* src = chunk.src + taps[a.first_tap[j]];
    const Vf weight = set(a.first.values[j]);
    unroll<vectors>([&](auto v) { sum[v] = fma(weight, load(src + chunk.src_at[v]), sum[v]); });
  }
  unroll<vectors>([&](auto v) { store(tile + chunk.tile_at[v], sum[v]); });
}

using Gather = void (*)(const ConvPairArgs&, int, const int*, const Chunk&, float*);
struct GatherTable {
  Gather of[max_vectors + 1] = {};
};
constexpr GatherTable gather_table() {
  GatherTable table;
  unroll<max_vectors>([&](auto v) { table.of[v + 1] = gather<v + 1>; });
  return table;
}
constexpr GatherTable gathers = gather_table();

// x, but NaN where y is not finite.
SN_INLINE Vf poisoned(Vf x, Vf y) {
  const Vf zeros = y * zero();
  return select(is_nan(zeros), zeros, x);
}

// Makes NaN of the pixels for which a zero weight of kernel m reads what is not finite.
inline void poison_gathered(const ConvPairArgs& a, int m, const ConvPairPlane& plane, const float* src, float* tile) {
  int64_t next = a.first.begin[m];
  for (int tap = 0; tap < a.first_taps; ++tap) {
    if (next < a.first.begin[m + 1] && a.first_tap[next] == tap) {
      ++next;
      continue;
    }
    for (int p = plane.row_begin; p < plane.row_end; ++p) {
      float* row = tile + static_cast<ptrdiff_t>(p) * a.tile_columns;
      const float* from = src + p * a.src_row + plane.taps[tap];
      for (int q = 0; q < a.tile_columns; q += lanes) store(row + q, poisoned(load(row + q), load(from + q)));
    }
  }
}

// Whether the pixels inside the image are finite.
inline bool is_finite(const ConvPairArgs& a, const ConvPairPlane& plane, const float* tile) {
  Vf zeros = zero();
  for (int p = plane.row_begin; p < plane.row_end; ++p) {
    const float* row = tile + static_cast<ptrdiff_t>(p) * a.tile_columns;
    for (int q = plane.column_begin; q < plane.column_end; q += lanes) {
      const int n = plane.column_end - q < lanes ? plane.column_end - q : lanes;
      zeros = fma(load_n(row + q, n), zero(), zeros);
    }
  }
  return !any(is_nan(zeros));
}

// Channel m's tile. Whether all of it is finite.
inline bool fill_tile(const ConvPairArgs& a, int m) {
  const float* src = a.src + m / (a.channels / a.first_groups) * a.first_channels * a.src_plane;
  bool finite = true;
  for (int i = 0; i < a.plane_count; ++i) {
    const ConvPairPlane& plane = a.planes[i];
    const int rows = plane.row_end - plane.row_begin, per_row = a.tile_columns / lanes, vectors = rows * per_row;
    if (rows <= 0 || plane.column_begin >= plane.column_end) continue;
    float* tile = a.tile + static_cast<ptrdiff_t>(i) * a.tile_rows * a.tile_columns;
    Chunk chunk{.src = src + plane.src, .src_at = {}, .tile_at = {}};
    for (int first = 0; first < vectors; first += max_vectors) {
      const int count = vectors - first < max_vectors ? vectors - first : max_vectors;
      for (int v = 0; v < count; ++v) {
        const int p = plane.row_begin + (first + v) / per_row, q = (first + v) % per_row * lanes;
        chunk.src_at[v] = p * a.src_row + q;
        chunk.tile_at[v] = static_cast<ptrdiff_t>(p) * a.tile_columns + q;
      }
      gathers.of[count](a, m, plane.taps, chunk, tile);
    }
    if (!a.src_finite) poison_gathered(a, m, plane, src + plane.src, tile);
    float* wanted = tile + static_cast<ptrdiff_t>(plane.row_begin) * a.tile_columns;
    if (a.activation.kind != ActivationKind::none) {
      activate_row(wanted, wanted, static_cast<size_t>(rows) * a.tile_columns, a.activation);
    }
    finite = is_finite(a, plane, tile) && finite;
  }
  return finite;
}

// Calls body(dst, tile, n) for the vectors of one kernel's outputs and of the pixels that reach them by a tap.
template <class Body>
SN_INLINE void for_outputs(const ConvPairArgs& a, int kernel, const ConvPairTap& tap, const Body& body) {
  const float* tile = a.tile + static_cast<ptrdiff_t>(tap.plane) * a.tile_rows * a.tile_columns;
  float* dst = a.dst + kernel * a.dst_plane + tap.dst;
  for (int p = tap.row_begin; p < tap.row_end; ++p) {
    const float* from = tile + static_cast<ptrdiff_t>(p) * a.tile_columns;
    float* to = dst + p * a.dst_row;
    int q = tap.column_begin;
    for (; q + lanes <= tap.column_end; q += lanes) store(to + q, body(load(to + q), load(from + q)));
    const int n = tap.column_end - q;
    if (n > 0) store_n(to + q, body(load_n(to + q, n), load_n(from + q, n)), n);
  }
}

inline void scatter(const ConvPairArgs& a, int m) {
  for (int64_t j = a.second.begin[m]; j < a.second.begin[m + 1]; ++j) {
    const Vf weight = set(a.second.values[j]);
    for_outputs(a, a.second_kernel[j], a.taps[a.second_tap[j]], [&](Vf sum, Vf x) { return fma(weight, x, sum); });
  }
}

// Makes NaN of the outputs for which a zero weight reads what is not finite in channel m.
inline void poison_outputs(const ConvPairArgs& a, int m) {
  const int kernels = a.kernels / a.second_groups, group = m / (a.channels / a.second_groups);
  int64_t next = a.second.begin[m];
  for (int kernel = group * kernels; kernel < (group + 1) * kernels; ++kernel) {
    for (int tap = 0; tap < a.tap_count; ++tap) {
      if (next < a.second.begin[m + 1] && a.second_kernel[next] == kernel && a.second_tap[next] == tap) {
        ++next;
      } else {
        for_outputs(a, kernel, a.taps[tap], [](Vf sum, Vf x) { return poisoned(sum, x); });
      }
    }
  }
}

inline void run(const ConvPairArgs& a) {
  for (int m = 0; m < a.channels; ++m) {
    const bool finite = fill_tile(a, m);
    scatter(a, m);
    if (!finite) poison_outputs(a, m);
  }
}

}  // namespace conv_pair
}  // namespace softneuro::SN_ISA

namespace softneuro {

SN_KERNEL_TABLE(ConvPairKernels, conv_pair) = {
    .lanes = SN_ISA::lanes,
    .run = SN_ISA::conv_pair::run,
};

}  // namespace softneuro
