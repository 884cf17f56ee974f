// conv_direct's tiles: pixels by a panel's blocks of output channels in registers, all of them for one pass over (input
// block, r, s, lane).
#pragma once

#include "base/cpu_traits.h"
#include "kernels/conv_direct/conv_direct.h"
#include "kernels/integers.h"
#include "kernels/store/tiles.h"
#include "kernels/unroll.h"
#include "simd/half.h"
#include "simd/hold.h"

namespace softneuro::SN_ISA {
namespace conv_direct {

// Accumulators leave room for a panel's weights and one broadcast.
constexpr int max_panel = registers >= 32 ? 4 : 3;
// Floats from the weights in use to those being fetched.
constexpr int weights_ahead = 2048;
constexpr int max_tile(int panel) {
  if (registers < 32) return 12 / panel;
  return panel == 1 ? 24 : panel == 4 ? 6 : 28 / panel;
}

struct Tile {
  const float* src;  // pixel 0, first tap
  const int* tap_x;  // offset of each s
  size_t src_block, src_row;
  const float* weights;  // at the first tap
  size_t weights_block, weights_row;
  const float *next, *next_end;  // weights that later tiles want, to be in L2 by then
  int fetch;       // floats of them for each input channel and tap, of which one line is fetched: more would cost time
  bool far;        // these weights are not in L2 yet
  bool fetch_src;  // into L2: the pixels of a tile behind this one, which nothing has read yet
  bool fetch_dst;  // and the residual, which for short sums has a cost of its own (fetches_dst)
  int blocks, rows, taps;  // input channel blocks, r, s
  int last_block;          // channels to sum of the last of these blocks, a multiple of 4: the rest is padding
  float* dst;
  const float* residual;  // null: none
  const float* bias;      // null: zero
  size_t dst_block;
  bool first, last;  // start from the bias, else from dst; finish, else store the sums
  const Activation* activation;
};

// One input channel: a broadcast per pixel, used by every block of the panel. far: the weights ahead are fetched here,
// as the hardware's own prefetch stops at page ends and lags behind, and a line at a time, as a burst would take all
// the buffers that lines come through. narrow: of the last block only the lower half counts.
template <int tile, int panel, bool narrow, bool far>
SN_INLINE void accumulate(Vf (&sum)[tile * panel], const float* src, const float* weights) {
  Vf w[panel];
  unroll<panel>([&](int b) { w[b] = load(weights + b * lanes); });
  constexpr int each = tile / panel > 0 ? tile / panel : 1;  // pixels from line to line
  unroll<tile>([&](int p) {
    const Vf x = set(src[p * lanes]);
    if (far && p % each == 0 && p / each < panel) {
      prefetch(weights + p / each * lanes + weights_ahead);
      in_order();
    }
    unroll<panel>([&](int b) {
      Vf& y = sum[b * tile + p];
      if (narrow && b + 1 == panel) {
        // Zen 4 broadcasts to a register every second cycle, and within an FMA at no cost: a tenth of the time where
        // no more than one and a half vectors use a pixel. Intel's FMAs with a load take a quarter longer.
        y = panel == 2 ? fma_half(src + p * lanes, w[b], y) : fma_half(x, w[b], y);
      } else {
        y = fma(x, w[b], y);
      }
    });
  });
}

// far: weights are fetched, these and the next; where none are needed it would take a twentieth of the time and more.
template <int tile, int panel, bool narrow, bool far>
[[gnu::flatten]] void compute_tile(const Tile& t) {
  Vf sum[tile * panel];
  unroll<panel>([&](int b) {
    const Vf start = t.bias != nullptr ? load(t.bias + b * lanes) : zero();
    unroll<tile>([&](int p) { sum[b * tile + p] = start; });
  });
  if (!t.first) {
    unroll<panel>(
        [&](int b) { unroll<tile>([&](int p) { sum[b * tile + p] = load(t.dst + b * t.dst_block + p * lanes); }); });
  }
  const float* next = t.next;
  // What finish_tile reads and writes is asked for a few lines at a time, as all of them at once would keep the weights
  // waiting.
  constexpr int lines = tile * panel;
  const int each = t.last && t.fetch_dst ? ceil_div(lines, t.blocks) : 0;
  int line = 0;
  for (int cb = 0; cb < t.blocks; ++cb) {
    const int channels = cb + 1 < t.blocks ? lanes : t.last_block;
    // Each block's pixels are a short run of lines of its own, which the hardware's prefetch notices too late. Larger
    // kernels read a copy that is near and read again.
    if (t.taps == 1) {
      const float* src = cb + 1 < t.blocks ? t.src + (cb + 1) * t.src_block : t.src + tile * lanes;
      for (int p = 0; p < tile; ++p) prefetch(src + p * lanes);
    }
    for (const int end = line + each < lines ? line + each : lines; line < end; ++line) {
      const size_t at = line % panel * t.dst_block + line / panel * lanes;
      if (t.residual != nullptr) prefetch(t.residual + at);
      prefetch_to_write(t.dst + at);
    }
    if (t.fetch_src) {
      for (int p = 0; p < tile; ++p) prefetch_l2(t.src + cb * t.src_block + (tile + p) * lanes);
    }
    for (int r = 0; r < t.rows; ++r) {
      const float* row = t.src + cb * t.src_block + r * t.src_row;
      for (int s = 0; s < t.taps; ++s) {
        const float* src = row + t.tap_x[s];
        const float* w = t.weights + cb * t.weights_block + r * t.weights_row + s * (panel * lanes * lanes);
        for (int i = 0; i < channels; i += 4) {
          unroll<4>([&](int j) {
            accumulate<tile, panel, narrow, far>(sum, src + i + j, w + j * panel * lanes);
            if constexpr (far) {
              prefetch_l2(next + j * t.fetch);
              in_order();
            }
          });
          w += 4 * panel * lanes;
          next += 4 * t.fetch;
        }
      }
    }
  }
  finish_tile<panel, tile>(sum, t.last, t.activation, t.dst, t.residual, t.dst_block, lanes);
}

// About twenty sums where several blocks share a pixel: more stores in a row hold up the FMAs behind them.
constexpr int near_tile(int panel) {
  if (registers < 32) return max_tile(panel);
  return panel == 1 ? 24 : panel == 2 ? 10 : panel == 3 ? 7 : 5;
}

// More input channels than this are better off with larger tiles; where registers allow none, all run as these.
constexpr int near_channels = registers < 32 ? 1 << 30 : 192;

// What a short 1x1 kernel mostly is: `count` tiles one behind the other, from the bias to the end, weights near. Moves
// src, dst and the residual on. What a call of compute_tile does around its sums takes up to a quarter of the time of
// short ones. Lines asked for stay there: a little more in this loop, and g++ 12 spills sums.
template <int tile, int panel, bool has_residual>
[[gnu::flatten]] void compute_near(Tile& t, int count) {
  static constexpr float none[panel * lanes] = {};
  const float* bias = t.bias != nullptr ? t.bias : none;
  const ClampBounds bounds = clamp_bounds(*t.activation);
  const bool hardswish = t.activation->kind == ActivationKind::hardswish;
  const float* src = t.src;
  float* dst = t.dst;
  const float* residual = t.residual;
  for (; count > 0; --count, src += tile * lanes, dst += tile * lanes) {
    Vf sum[tile * panel];
    unroll<panel>([&](int b) {
      const Vf start = load(bias + b * lanes);
      unroll<tile>([&](int p) { sum[b * tile + p] = start; });
    });
    for (int cb = 0; cb < t.blocks; ++cb) {
      const int channels = cb + 1 < t.blocks ? lanes : t.last_block;
      const float *from = src + cb * t.src_block, *w = t.weights + cb * t.weights_block;
      for (int p = 0; p < tile; ++p) prefetch(from + (tile + p) * lanes);
      if (t.fetch_src) {
        for (int p = 0; p < tile; ++p) prefetch_l2(from + (2 * tile + p) * lanes);
      }
      for (int i = 0; i < channels; i += 4, w += 4 * panel * lanes) {
        unroll<4>([&](int j) { accumulate<tile, panel, false, false>(sum, from + i + j, w + j * panel * lanes); });
      }
    }
    const auto each = [&](const auto& body) {
      unroll<panel>([&](int b) { unroll<tile>([&](int p) { body(b * t.dst_block + p * lanes, sum[b * tile + p]); }); });
    };
    if constexpr (has_residual) {
      each([&](size_t at, Vf& x) { x = x + Reading<float>().value(residual + at); });
      residual += tile * lanes;
    }
    if (hardswish) {
      each([&](size_t at, const Vf& x) {
        Writing<float>().put(dst + at, activate<ActivationKind::hardswish>(x, x, x));
      });
    } else {
      const Vf lo = set(bounds.lo), hi = set(bounds.hi);
      each([&](size_t at, const Vf& x) { Writing<float>().put(dst + at, clamp(x, lo, hi)); });
    }
  }
  t.src = src, t.dst = dst, t.residual = residual;
}

using ComputeTile = void (*)(const Tile&);
using ComputeNear = void (*)(Tile&, int);
struct TileTable {
  ComputeTile compute[2][2][max_panel + 1][max_tile(1) + 1] = {};  // [narrow][far]
  ComputeNear near[2][max_panel + 1][near_tile(1) + 1] = {};       // [residual]
};
constexpr TileTable tile_table() {
  TileTable table;
  unroll<max_panel>([&](auto b) {
    constexpr int panel = b + 1;
    unroll<near_tile(panel)>([&](auto p) {
      table.near[0][panel][p + 1] = compute_near<p + 1, panel, false>;
      table.near[1][panel][p + 1] = compute_near<p + 1, panel, true>;
    });
    unroll<max_tile(panel)>([&](auto p) {
      unroll<2>([&](auto far) {
        table.compute[0][far][panel][p + 1] = compute_tile<p + 1, panel, false, far != 0>;
        table.compute[1][far][panel][p + 1] = compute_tile < p + 1, panel, has_half && panel != 1, far != 0 > ;
      });
    });
  });
  return table;
}
constexpr TileTable tiles = tile_table();

inline void compute_near_run(Tile& t, int panel, int pixels) {
  const int count = ceil_div(pixels, near_tile(panel)), length = pixels / count, longer = pixels % count;
  const auto& near = tiles.near[t.residual != nullptr][panel];
  if (longer > 0) near[length + 1](t, longer);
  near[length](t, count - longer);
}

// A run of output pixels, cut in tiles of nearly equal length. channels: of the panel's last block. Moves t.next on,
// src, dst and residual only meanwhile: a copy of t would read in one go what was just written in parts, which waits
// for all stores before it.
inline void compute_run(Tile& t, int panel, int channels, int pixels) {
  const float *src = t.src, *residual = t.residual;
  float* dst = t.dst;
  const bool narrow = has_half && channels <= lanes / 2 && (panel > 2 || (panel == 2 && halves_512_bits()));
  const int count = ceil_div(pixels, max_tile(panel)), length = pixels / count, longer = pixels % count;
  const bool plain =
      t.rows == 1 && t.taps == 1 && t.first && t.last && !t.fetch_dst && !narrow && t.blocks * lanes <= near_channels;
  for (int i = 0, x = 0; i < count; ++i) {
    if (plain && !t.far && t.fetch == 0) {
      compute_near_run(t, panel, pixels - x);
      break;
    }
    const int tile = length + (i < longer ? 1 : 0);
    tiles.compute[narrow][t.far || t.fetch != 0][panel][tile](t);
    t.far = false;
    x += tile;
    t.next += static_cast<ptrdiff_t>(t.blocks) * t.rows * t.taps * lanes * t.fetch;
    if (t.next >= t.next_end) t.fetch = 0;
    t.src += tile * lanes;
    t.dst += tile * lanes;
    if (t.residual != nullptr) t.residual += tile * lanes;
  }
  t.src = src, t.dst = dst, t.residual = residual;
}

}  // namespace conv_direct
}  // namespace softneuro::SN_ISA
