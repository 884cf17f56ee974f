#include "kernels/dot_blocks/layout.h"
#include "kernels/store/policy.h"
#include "kernels/unroll.h"
#include "kernels/vector_groups.h"
#include "simd/nibbles.h"

namespace softneuro::SN_ISA {
namespace dot_blocks {

// Bytes from the weights in use to those being fetched, into L2 as dot_rows does.
constexpr int ahead = 4160;
constexpr int most_at_once = 4;  // vectors
constexpr int streams = 2;       // panels read at a time, each from a part of the weights of its own

// Integer j of each lane.
template <int bits, int j>
SN_INLINE Vf unpack(Vi all) {
  if constexpr (bits == 4) return nibble<j>(all);
  return to_float(all << (24 - 8 * j) >> 24);
}

// The place in some panels, and what the current block of each shares.
template <int count, bool zeros>
struct Walk {
  const int32_t* w[count];
  Vf scale[count], zero_point[count];

  SN_INLINE void begin_block() {
    unroll<count>([&](auto n) {
      scale[n] = from_bits(load(w[n]));
      if constexpr (zeros) zero_point[n] = from_bits(load(w[n] + lanes));
      w[n] += zeros ? 2 * lanes : lanes;
    });
  }
};

// `count` panels: first, first + distance, ...
template <int bits, bool zeros, int count, int vectors>
[[gnu::flatten]] void compute(const DotBlocks& p, const ClampBounds& bounds, int first, int distance) {
  constexpr int step = dot_blocks_step(bits), sums = count * vectors;
  // Two sets of sums where one could not hide the latency.
  constexpr int sets = sums < 4 ? 2 : 1;
  const size_t size = dot_blocks_panel_size(p, lanes);
  Walk<count, zeros> walk;
  unroll<count>([&](auto n) { walk.w[n] = p.weights + static_cast<size_t>(first + n * distance) * size; });
  Vf sum[sums];
  unroll<sums>([&](auto i) { sum[i] = zero(); });
  // What follows the last whole step of each vector, and zeros.
  float last[vectors][step];
  const int whole = p.k - p.k % step;
  for (int i = 0; i < vectors; ++i) {
    for (int j = 0; j < step; ++j) last[i][j] = whole + j < p.k ? p.x[i * p.x_stride + whole + j] : 0;
  }
  for (int l = 0; l < p.k; l += p.block) {
    walk.begin_block();
    Vf part[sets][sums];
    unroll<sets * sums>([&](auto i) { part[i / sums][i % sums] = zero(); });
    const int end = p.k - l < p.block ? p.k : l + p.block;
    for (int k = l; k < end; k += step) {
      const float* const x = k < whole ? p.x + k : last[0];
      const ptrdiff_t stride = k < whole ? p.x_stride : step;
      unroll<count>([&](auto n) {
        const Vi all = load(walk.w[n]);
        if (p.fetch) prefetch_l2(reinterpret_cast<const float*>(walk.w[n]) + ahead / 4);
        walk.w[n] += lanes;
        unroll<step>([&](auto j) {
          Vf weight = unpack<bits, j>(all);
          if constexpr (zeros) weight = weight - walk.zero_point[n];
          unroll<vectors>([&](auto i) {
            Vf& y = part[j % sets][n * vectors + i];
            y = fma(weight, set(x[i * stride + j]), y);
          });
        });
      });
    }
    unroll<sums>([&](auto i) {
      Vf all = part[0][i];
      if constexpr (sets == 2) all = all + part[1][i];
      sum[i] = fma(all, walk.scale[i / vectors], sum[i]);
    });
  }
  unroll<count>([&](auto n) { finish_panel<vectors>(p, bounds, first + n * distance, sum + n * vectors); });
}

template <int bits, bool zeros>
void run_panels(const DotBlocks& p, const ClampBounds& bounds, int begin, int end) {
  unroll<most_at_once>([&](auto i) {
    constexpr int vectors = i + 1;
    if (p.vectors != vectors) return;
    const int part = (end - begin) / streams;
    for (int n = 0; n < part; ++n) compute<bits, zeros, streams, vectors>(p, bounds, begin + n, part);
    for (int n = begin + streams * part; n < end; ++n) compute<bits, zeros, 1, vectors>(p, bounds, n, 0);
  });
}

inline void run(const DotBlocks& p, int begin, int end) {
  const ClampBounds bounds = clamp_bounds(p.epilogue.activation);
  in_groups(p, most_at_once, 2 * streams, begin, end, [&](const DotBlocks& part, int from, int to) {
    if (p.bits == 4) {
      p.zeros ? run_panels<4, true>(part, bounds, from, to) : run_panels<4, false>(part, bounds, from, to);
    } else {
      p.zeros ? run_panels<8, true>(part, bounds, from, to) : run_panels<8, false>(part, bounds, from, to);
    }
  });
  activate_panels(p, begin, end);
}

template <int bits, bool zeros>
[[gnu::flatten]] void decode_panel(const DotBlocks& p, const int32_t* packed, int k_begin, int k_end, ptrdiff_t stride,
                                   float* to) {
  constexpr int step = dot_blocks_step(bits), head = zeros ? 2 : 1;
  packed += static_cast<ptrdiff_t>(k_begin / p.block * head + k_begin / step) * lanes;
  to -= k_begin * stride;
  Walk<1, zeros> walk{{packed}, {}, {}};
  for (int l = k_begin; l < k_end; l += p.block) {
    walk.begin_block();
    const int end = k_end - l < p.block ? k_end : l + p.block;
    for (int k = l; k < end; k += step) {
      const Vi all = load(walk.w[0]);
      walk.w[0] += lanes;
      unroll<step>([&](auto j) {
        Vf weight = unpack<bits, j>(all);
        if constexpr (zeros) weight = weight - walk.zero_point[0];
        if (k + j < end) store(to + (k + j) * stride, weight * walk.scale[0]);
      });
    }
  }
}

inline void decode(const DotBlocks& p, int begin, int end, int k_begin, int k_end, float* to) {
  const size_t size = dot_blocks_panel_size(p, lanes);
  const ptrdiff_t stride = static_cast<ptrdiff_t>(end - begin) * lanes;
  for (int n = begin; n < end; ++n, to += lanes) {
    const int32_t* const packed = p.weights + static_cast<size_t>(n) * size;
    const auto panel = p.bits == 4 ? (p.zeros ? decode_panel<4, true> : decode_panel<4, false>)
                                   : (p.zeros ? decode_panel<8, true> : decode_panel<8, false>);
    panel(p, packed, k_begin, k_end, stride, to);
  }
}

// Number `index` of a packed list, less the middle of its range.
inline int32_t centred(const uint8_t* list, int bits, int index) {
  if (bits == 8) return list[index] - 128;
  return (list[index / 2] >> (index % 2 * 4) & 15) - 8;
}

inline void pack(const DotBlocks& p, const WeightBlocks& from, int32_t* packed) {
  const int blocks = ceil_div(p.k, p.block), step = dot_blocks_step(p.bits), bytes = p.block * p.bits / 8;
  const int zero_bytes = ceil_div(blocks * p.bits, 8);
  const uint32_t mask = p.bits == 4 ? 15 : 255;
  for (int first = 0; first < p.n; first += lanes) {
    for (int block = 0; block < blocks; ++block) {
      const int count = p.k - block * p.block < p.block ? p.k - block * p.block : p.block;
      const int vectors = ceil_div(count, step) + (p.zeros ? 2 : 1);
      for (int lane = 0; lane < lanes; ++lane) {
        const size_t n = static_cast<size_t>(first + lane), at = n * blocks + block;
        const bool there = first + lane < p.n;
        float head[2] = {};
        if (there) head[0] = from.scales[at];
        if (there && p.zeros) head[1] = static_cast<float>(centred(from.zeros + n * zero_bytes, p.bits, block));
        int32_t* to = packed + lane;
        for (int i = 0; i < (p.zeros ? 2 : 1); ++i, to += lanes) __builtin_memcpy(to, head + i, sizeof *head);
        for (int k = 0; k < count; k += step, to += lanes) {
          uint32_t all = 0;
          for (int j = 0; there && j < step && k + j < count; ++j) {
            const auto one = static_cast<uint32_t>(centred(from.integers + at * bytes, p.bits, k + j));
            all |= (one & mask) << (j * p.bits);
          }
          *to = static_cast<int32_t>(all);
        }
      }
      packed += vectors * lanes;
    }
  }
}

}  // namespace dot_blocks
}  // namespace softneuro::SN_ISA

namespace softneuro {

SN_KERNEL_TABLE(DotBlocksKernels, dot_blocks) = {
    .lanes = SN_ISA::lanes,
    .pack = SN_ISA::dot_blocks::pack,
    .run = SN_ISA::dot_blocks::run,
    .decode = SN_ISA::dot_blocks::decode,
};

}  // namespace softneuro
