#include "kernels/dot_sparse/dot_sparse.h"
#include "kernels/dot_sparse/layout.h"
#include "kernels/finite/all_finite.h"
#include "kernels/unroll.h"
#include "kernels/vector_groups.h"
#include "simd/sparse.h"

namespace softneuro::SN_ISA {
namespace dot_sparse {

// Floats from the weights in use to those being fetched, into L2 as dot_rows does.
constexpr int ahead = 1040, line = 16;
// Rows read at a time, each from a part of the weights of its own.
constexpr int streams(int vectors) { return vectors == 1 ? 8 : vectors == 2 ? 4 : 2; }

SN_INLINE const float* floats(const int32_t* p) { return reinterpret_cast<const float*>(p); }
SN_INLINE int width(int k) { return round_up(k + 1, dot_sparse_bitmap); }

template <bool fetch>
SN_INLINE void fetch_ahead(const int32_t* w) {
  if constexpr (fetch) prefetch_l2(floats(w) + ahead), prefetch_l2(floats(w) + ahead + line);
}

// The values that are not finite of the vector x that the row has weights for.
template <class Index>
[[gnu::noinline]] int met(const DotSparse& p, const float* x, int row) {
  int count = 0;
  for (int64_t at = p.starts[row]; at < p.starts[row + 1]; at += dot_sparse_group_size(8 * sizeof(Index))) {
    const int32_t* const w = p.weights + at;
    const auto* const columns = reinterpret_cast<const Index*>(w + 1);
    const float* const values = floats(w + 1 + dot_sparse_group * sizeof(Index) / 4);
    for (int i = 0; i < dot_sparse_group; ++i) {
      if (values[i] != 0 && x[w[0] + columns[i]] * 0 != 0) ++count;
    }
  }
  return count;
}

// Rows first, first + step, ...
template <int rows, int vectors, bool fetch>
[[gnu::flatten]] void by_bitmaps(const DotSparse& p, const ClampBounds& bounds, int first, int step) {
  const int32_t* w[rows];
  Vf sum[rows * vectors];
  unroll<rows>([&](auto r) { w[r] = p.weights + p.starts[first + r * step]; });
  unroll<rows * vectors>([&](auto i) { sum[i] = zero(); });
  const int stride = width(p.k);
  const float* x = p.x;
  for (int l = 0; l < p.k; l += dot_sparse_bitmap, x += dot_sparse_bitmap) {
    unroll<rows>([&](auto r) {
      uint64_t bitmap;
      __builtin_memcpy(&bitmap, w[r], sizeof bitmap);
      fetch_ahead<fetch>(w[r]);
      const float* from = floats(w[r] + 2);
      unroll<dot_sparse_bitmap / lanes>([&](auto part) {
        const auto mask = static_cast<uint32_t>(bitmap >> (part * lanes)) & ((1u << lanes) - 1);
        const Vf weight = expand(from, mask);
        from += count(mask);
        unroll<vectors>([&](auto i) {
          Vf& y = sum[r * vectors + i];
          y = fma(weight, load(x + i * stride + part * lanes), y);
        });
      });
      w[r] = reinterpret_cast<const int32_t*>(from);
    });
  }
  unroll<rows>([&](auto r) {
    float sums[vectors];
    unroll<vectors>([&](auto i) { sums[i] = reduce_add(sum[r * vectors + i]); });
    finish_row<vectors>(p, bounds, first + r * step, sums);
  });
}

template <class Index, int rows, int vectors, bool fetch>
[[gnu::flatten]] void by_columns(const DotSparse& p, const ClampBounds& bounds, int first, int step) {
  constexpr int size = dot_sparse_group_size(8 * sizeof(Index)), indices = dot_sparse_group * sizeof(Index) / 4;
  const int32_t* w[rows];
  Vf sum[rows * vectors];
  unroll<rows * vectors>([&](auto i) { sum[i] = zero(); });
  const int stride = width(p.k);
  const auto group = [&](auto r) __attribute__((always_inline)) {
    fetch_ahead<fetch>(w[r]);
    const auto* const columns = reinterpret_cast<const Index*>(w[r] + 1);
    const float *const values = floats(w[r] + 1 + indices), *const x = p.x + w[r][0];
    unroll<dot_sparse_group / lanes>([&](auto part) {
      const Vf weight = load(values + part * lanes);
      unroll<vectors>([&](auto i) {
        Vf& y = sum[r * vectors + i];
        y = fma(weight, gather(x + i * stride, columns + part * lanes), y);
      });
    });
    w[r] += size;
  };
  int64_t least = p.starts[first + 1] - p.starts[first];
  unroll<rows>([&](auto r) {
    const int64_t* const start = p.starts + first + r * step;
    w[r] = p.weights + start[0];
    if (start[1] - start[0] < least) least = start[1] - start[0];
  });
  for (int64_t at = 0; at < least; at += size) unroll<rows>(group);
  unroll<rows>([&](auto r) {
    const int row = first + r * step;
    for (const int32_t* const end = p.weights + p.starts[row + 1]; w[r] < end;) group(r);
    float sums[vectors];
    unroll<vectors>([&](auto i) {
      const bool zeros_meet = p.nonfinite[i] > 0 && met<Index>(p, p.x + i * stride, row) < p.nonfinite[i];
      sums[i] = zeros_meet ? __builtin_nanf("") : reduce_add(sum[r * vectors + i]);
    });
    finish_row<vectors>(p, bounds, row, sums);
  });
}

template <int bits, int rows, int vectors, bool fetch>
SN_INLINE void compute(const DotSparse& p, const ClampBounds& bounds, int first, int step) {
  if constexpr (bits == 1) {
    by_bitmaps<rows, vectors, fetch>(p, bounds, first, step);
  } else if constexpr (bits == 8) {
    by_columns<uint8_t, rows, vectors, fetch>(p, bounds, first, step);
  } else {
    by_columns<uint16_t, rows, vectors, fetch>(p, bounds, first, step);
  }
}

template <int bits, int vectors, bool fetch>
void all_rows(const DotSparse& p, const ClampBounds& bounds, int begin, int end) {
  constexpr int rows = streams(vectors);
  const int part = (end - begin) / rows;
  for (int n = 0; n < part; ++n) compute<bits, rows, vectors, fetch>(p, bounds, begin + n, part);
  for (int n = begin + rows * part; n < end; ++n) compute<bits, 1, vectors, false>(p, bounds, n, 0);
}

template <int bits>
void with_vectors(const DotSparse& p, const ClampBounds& bounds, int begin, int end) {
  unroll<DotSparse::most_vectors>([&](auto i) {
    constexpr int vectors = i + 1;
    if (p.vectors != vectors) return;
    if (p.fetch) return all_rows<bits, vectors, true>(p, bounds, begin, end);
    all_rows<bits, vectors, false>(p, bounds, begin, end);
  });
}

inline void run(const DotSparse& p, int begin, int end) {
  const ClampBounds bounds = clamp_bounds(p.epilogue.activation);
  if (p.bits == 1) {
    with_vectors<1>(p, bounds, begin, end);
  } else if (p.bits == 8) {
    with_vectors<8>(p, bounds, begin, end);
  } else {
    with_vectors<16>(p, bounds, begin, end);
  }
  activate_outputs(p, begin, end);
}

inline int copy(const float* x, int k, float* to) {
  for (int l = 0; l < width(k); l += lanes) {
    const int left = k - l < 0 ? 0 : k - l;
    store(to + l, left < lanes ? load_n(x + (left > 0 ? l : 0), left) : load(x + l));
  }
  if (all_finite(to, k)) return 0;
  int nonfinite = 0;
  for (int l = 0; l < k; ++l) nonfinite += x[l] * 0 == 0 ? 0 : 1;
  return nonfinite;
}

}  // namespace dot_sparse
}  // namespace softneuro::SN_ISA

namespace softneuro {

SN_KERNEL_TABLE(DotSparseKernels, dot_sparse) = {
    .copy = SN_ISA::dot_sparse::copy,
    .run = SN_ISA::dot_sparse::run,
};

}  // namespace softneuro
