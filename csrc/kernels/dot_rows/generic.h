#include "kernels/dot_rows/dot_rows.h"
#include "kernels/store/policy.h"
#include "kernels/unroll.h"
#include "kernels/vector_groups.h"
#include "simd/elements.h"

namespace softneuro::SN_ISA {
namespace dot_rows_detail {

// Bytes from the weights in use to those being fetched. Into L2: on a Zen 4 it takes memory's lines in the greatest
// number, where fetching into L1 was a quarter slower than not fetching at all.
constexpr int ahead = 4160;
// Rows of weights in bytes that stay in L2 while they meet more vectors than there are registers for.
constexpr int block = 16;

// Rows first, first + step, ...
template <int rows, int vectors, bool fetch, class Weight>
[[gnu::flatten]] void products(const DotRows& p, const ClampBounds& bounds, int first, int step) {
  // Two sets of sums where one could not hide the latency.
  constexpr int sets = rows * vectors < 8 ? 2 : 1, count = rows * vectors;
  // Weights of one byte are read by the line where vectors are large, so that each line is fetched once.
  constexpr int parts = sizeof(Weight) == 1 ? 4 : sets, size = static_cast<int>(sizeof(Weight)) * lanes;
  const Weight* row[rows];
  unroll<rows>(
      [&](auto r) { row[r] = static_cast<const Weight*>(p.weights) + static_cast<ptrdiff_t>(first + r * step) * p.k; });
  Vf sum[sets * count];
  unroll<sets * count>([&](auto i) { sum[i] = zero(); });
  int l = 0;
  for (; l + parts * lanes <= p.k; l += parts * lanes) {
    unroll<parts>([&](auto s) {
      const int at = l + s * lanes;
      Vf x[vectors];
      unroll<vectors>([&](auto i) { x[i] = load(p.x + i * p.x_stride + at); });
      unroll<rows>([&](auto r) {
        const Vf w = load(row[r] + at);
        if constexpr (fetch && (parts == sets || s * size % 64 == 0)) {
          prefetch_l2(reinterpret_cast<const float*>(row[r] + at) + ahead / 4);
        }
        unroll<vectors>([&](auto i) {
          Vf& y = sum[s % sets * count + r * vectors + i];
          y = fma(w, x[i], y);
        });
      });
    });
  }
  for (; l < p.k; l += lanes) {
    const int left = p.k - l < lanes ? p.k - l : lanes;
    unroll<vectors>([&](auto i) {
      const Vf x = load_n(p.x + i * p.x_stride + l, left);
      unroll<rows>([&](auto r) {
        Vf& y = sum[r * vectors + i];
        y = fma(load_n(row[r] + l, left), x, y);
      });
    });
  }
  unroll<sets - 1>([&](auto s) { unroll<count>([&](auto i) { sum[i] = sum[i] + sum[(s + 1) * count + i]; }); });
  unroll<rows>([&](auto r) {
    float sums[vectors];
    const int n = first + r * step;
    const float factor = p.factors == nullptr ? 1 : p.factors[n];
    unroll<vectors>([&](auto i) { sums[i] = reduce_add(sum[r * vectors + i]) * factor; });
    finish_row<vectors>(p, bounds, n, sums);
  });
}

template <int streams, int vectors, bool fetch, class Weight>
void all_rows(const DotRows& p, const ClampBounds& bounds, int begin, int end) {
  const int part = (end - begin) / streams;
  for (int n = 0; n < part; ++n) products<streams, vectors, fetch, Weight>(p, bounds, begin + n, part);
  for (int n = begin + streams * part; n < end; ++n) products<1, vectors, false, Weight>(p, bounds, n, 0);
}

template <int streams, int vectors, class Weight>
void all_rows(const DotRows& p, const ClampBounds& bounds, int begin, int end) {
  if (p.fetch) return all_rows<streams, vectors, true, Weight>(p, bounds, begin, end);
  all_rows<streams, vectors, false, Weight>(p, bounds, begin, end);
}

template <class Weight>
void all_rows(const DotRows& p, const ClampBounds& bounds, int begin, int end) {
  unroll<DotRows::most_vectors>([&](auto i) {
    constexpr int vectors = i + 1;
    if (p.vectors != vectors) return;
    if constexpr (DotRows::has_streams(8, vectors)) {
      if (p.streams == 8) return all_rows<8, vectors, Weight>(p, bounds, begin, end);
    }
    all_rows<4, vectors, Weight>(p, bounds, begin, end);
  });
}

}  // namespace dot_rows_detail

inline void dot_rows(const DotRows& p, int begin, int end) {
  const ClampBounds bounds = clamp_bounds(p.epilogue.activation);
  if (p.type == DType::float16) {
    dot_rows_detail::all_rows<Float16>(p, bounds, begin, end);
  } else if (p.type == DType::bfloat16) {
    dot_rows_detail::all_rows<BFloat16>(p, bounds, begin, end);
  } else if (p.type == DType::int8) {
    in_groups(p, DotRows::most_vectors, dot_rows_detail::block, begin, end, [&](const DotRows& part, int from, int to) {
      dot_rows_detail::all_rows<int8_t>(part, bounds, from, to);
    });
  } else {
    dot_rows_detail::all_rows<float>(p, bounds, begin, end);
  }
  activate_outputs(p, begin, end);
}

}  // namespace softneuro::SN_ISA

namespace softneuro {

SN_KERNEL_TABLE(DotRowsKernel, dot_rows) = SN_ISA::dot_rows;

}  // namespace softneuro
