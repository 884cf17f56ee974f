// conv_indirect over Vf: a tile of pixels by a panel of output channels in registers. Contract: conv_indirect.h.
#pragma once

#include "kernels/conv_indirect/conv_indirect.h"
#include "kernels/integers.h"
#include "kernels/store/rest.h"
#include "kernels/store/tiles.h"
#include "kernels/unroll.h"

namespace softneuro::SN_ISA {
namespace conv_indirect {

constexpr int max_panel = registers >= 32 ? 4 : 3;
constexpr int max_tile(int panel) {
  if (registers < 32) return 12 / (panel < 2 ? 2 : panel);
  return panel <= 2 ? 14 : panel == 3 ? 9 : 6;
}
// Floats from the weights in use to those being fetched.
constexpr int ahead = 2048;
// Input channels of a tile's pixels that are gathered before they are used. Rows of many channels lie a multiple of the
// L1 cache's sets apart and would evict each other while each of their lines is read one float at a time; and a tile
// has more rows than there are integer registers to hold their addresses.
constexpr int depth = 16;
constexpr int line = 16;  // floats of a cache line

struct Tile : RowTile<> {
  const float* src;
  const float* zeros;
  const float* weights;                  // at the first tap
  const float* next;                     // weights that the next tiles want
  ptrdiff_t next_step;                   // floats of them to fetch per `depth` channels
  const ptrdiff_t* row[max_tile(1)];     // of each pixel
  const ptrdiff_t* column[max_tile(1)];  // of each pixel
  int tap_begin, tap_end, kernel_w, channels;
};

// One input channel: a broadcast per pixel, used by every vector of the panel.
template <int rows, int panel>
SN_INLINE void accumulate(Vf (&sum)[rows * panel], const float* a, const float* weights) {
  Vf w[panel];
  unroll<panel>([&](int v) {
    w[v] = load(weights + v * lanes);
    prefetch(weights + v * lanes + ahead);
  });
  unroll<rows>([&](int i) {
    const Vf x = set(a[i * depth]);
    unroll<panel>([&](int v) { sum[i * panel + v] = fma(x, w[v], sum[i * panel + v]); });
  });
}

// The first `count` of `depth` floats, nothing past them is read.
SN_INLINE void gather(const float* from, int count, float* to) {
  unroll<depth / lanes>([&](int v) {
    const int rest = count - v * lanes;
    if (rest >= lanes) {
      store(to + v * lanes, load(from + v * lanes));
    } else if (rest > 0) {
      store(to + v * lanes, load_n(from + v * lanes, rest));
    }
  });
}

template <int rows, int panel>
[[gnu::flatten]] void compute_tile(const Tile& t) {
  Vf sum[rows * panel];
  unroll<rows * panel>([&](int i) { sum[i] = zero(); });
  alignas(64) float gathered[rows * depth];
  const float* from[rows];
  const float* w = t.weights;
  const float* next = t.next;
  int r = t.tap_begin / t.kernel_w, s = t.tap_begin % t.kernel_w;
  for (int tap = t.tap_begin; tap < t.tap_end; ++tap) {
    bool inside = false;
    unroll<rows>([&](int i) {
      const ptrdiff_t at = t.row[i][r] + t.column[i][s];
      from[i] = at >= 0 ? t.src + at : t.zeros;
      inside |= at >= 0;
    });
    if (++s == t.kernel_w) s = 0, ++r;
    if (!inside) {
      w += static_cast<size_t>(t.channels) * panel * lanes;
      continue;
    }
    for (int c = 0; c < t.channels; c += depth) {
      const int count = t.channels - c < depth ? t.channels - c : depth;
      unroll<rows>([&](int i) { gather(from[i] + c, count, gathered + i * depth); });
      for (const float* end = next + t.next_step; next < end; next += line) prefetch_l2(next);
      int l = 0;
      for (; l + 4 <= count; l += 4) {
        unroll<4>([&](int j) { accumulate<rows, panel>(sum, gathered + l + j, w + j * panel * lanes); });
        w += 4 * panel * lanes;
      }
      for (; l < count; ++l, w += panel * lanes) accumulate<rows, panel>(sum, gathered + l, w);
    }
  }
  finish_rows<rows, panel>(t, sum);
}

using ComputeTile = void (*)(const Tile&);
struct TileTable {
  ComputeTile compute[max_panel + 1][max_tile(1) + 1] = {};
};
constexpr TileTable tile_table() {
  TileTable table;
  unroll<max_panel>([&](auto v) {
    constexpr int panel = v + 1;
    unroll<max_tile(panel)>([&](auto i) { table.compute[panel][i + 1] = compute_tile<i + 1, panel>; });
  });
  return table;
}
constexpr TileTable tiles = tile_table();

inline void compute_panel(const ConvIndirectArgs& args, int index, int pixel_begin, int pixel_end) {
  const int first = index * args.tiling.panel, vectors = ceil_div(args.out_channels, lanes) - first;
  const int panel = vectors < args.tiling.panel ? vectors : args.tiling.panel;
  const int column = first * lanes;
  const int taps = args.kernel_h * args.kernel_w;
  const size_t tap_weights = static_cast<size_t>(args.in_channels) * panel * lanes;
  const float* residual = args.epilogue.residual.f32();
  Tile t;
  t.src = args.src;
  t.zeros = args.zeros;
  t.kernel_w = args.kernel_w;
  t.channels = args.in_channels;
  t.stride = args.dst_stride;
  t.bias = args.epilogue.bias != nullptr ? args.epilogue.bias + column : nullptr;
  t.columns = args.out_channels - column >= panel * lanes ? lanes : args.out_channels - column - (panel - 1) * lanes;
  t.bounds = clamp_bounds(args.epilogue.activation);
  const int pixels = pixel_end - pixel_begin, count = ceil_div(pixels, max_tile(panel));
  // Together, the tiles fetch the weights that come after theirs, once: weights out of memory arrive at an even rate,
  // not all of them during the first tile (5 to 8 % of layers whose weights exceed L2, on a Zen 4).
  t.next_step = round_up(ceil_div(depth * panel * lanes, count), line);
  for (t.tap_begin = 0; t.tap_begin < taps; t.tap_begin = t.tap_end) {
    t.tap_end = taps - t.tap_begin < args.tiling.tap_block ? taps : t.tap_begin + args.tiling.tap_block;
    t.first = t.tap_begin == 0;
    t.last = t.tap_end == taps;
    t.weights = args.weights + static_cast<size_t>(column) * args.in_channels * taps + t.tap_begin * tap_weights;
    t.next = t.weights + (t.tap_end - t.tap_begin) * tap_weights;
    const ptrdiff_t next_tile = (t.tap_end - t.tap_begin) * t.next_step * ceil_div(args.in_channels, depth);
    int pixel = pixel_begin, y = pixel / args.out_w, x = pixel % args.out_w;
    for (int i = 0; i < count; ++i, t.next += next_tile) {
      const int rows = pixels / count + (i < pixels % count ? 1 : 0);
      const ptrdiff_t at = pixel * args.dst_stride + column;
      t.dst = args.dst + at;
      t.residual = residual != nullptr ? residual + at : nullptr;
      for (int j = 0; j < rows; ++j) {
        t.row[j] = args.rows + static_cast<ptrdiff_t>(y) * args.kernel_h;
        t.column[j] = args.columns + static_cast<ptrdiff_t>(x) * args.kernel_w;
        if (++x == args.out_w) x = 0, ++y;
      }
      tiles.compute[panel][rows](t);
      pixel += rows;
      if (!t.last || is_clamp(args.epilogue.activation.kind)) continue;
      for (int j = 0; j < rows; ++j) {
        float* out = t.dst + j * args.dst_stride;
        activate_row(out, out, static_cast<size_t>((panel - 1) * lanes + t.columns), args.epilogue.activation);
      }
    }
  }
}

inline void run(const ConvIndirectArgs& args, int panel_begin, int panel_end, int pixel_begin, int pixel_end) {
  for (int pixel = pixel_begin; pixel < pixel_end; pixel += args.tiling.pixel_block) {
    const int end = pixel_end - pixel < args.tiling.pixel_block ? pixel_end : pixel + args.tiling.pixel_block;
    for (int index = panel_begin; index < panel_end; ++index) compute_panel(args, index, pixel, end);
  }
}

}  // namespace conv_indirect
}  // namespace softneuro::SN_ISA

namespace softneuro {

SN_KERNEL_TABLE(ConvIndirectKernels, conv_indirect) = {
    .lanes = SN_ISA::lanes,
    .max_panel = SN_ISA::conv_indirect::max_panel,
    .max_tile = {0, SN_ISA::conv_indirect::max_tile(1), SN_ISA::conv_indirect::max_tile(2),
                 SN_ISA::conv_indirect::max_tile(3),
                 SN_ISA::conv_indirect::max_panel >= 4 ? SN_ISA::conv_indirect::max_tile(4) : 0},
    .run = SN_ISA::conv_indirect::run,
};

}  // namespace softneuro
