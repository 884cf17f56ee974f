// conv_first over Vf: a tile of pixels by one or two blocks of output channels in registers. Contract: conv_first.h.
#pragma once

#include "kernels/conv_first/conv_first.h"
#include "kernels/integers.h"
#include "kernels/store/rest.h"
#include "kernels/store/tiles.h"
#include "kernels/unroll.h"

namespace softneuro::SN_ISA {
namespace conv_first {

constexpr int max_panel = 2;
// As many sums as hide an FMA's latency and no more, since stores in a row hold up the FMAs behind them.
constexpr int max_tile = (registers >= 32 ? 16 : 12) / max_panel;
// Output rows from the one being computed to the one whose samples are fetched: 1 to 4 tried on a Zen 4 with samples in
// L3. Tiles of the same row, tried too, leave each row's first ones to the hardware.
constexpr int rows_ahead = 4;

struct Tile {
  const float* src;  // pixel 0, first tap; the pixels lie a template argument apart
  const int* tap_x;  // offset of each s
  size_t src_channel, src_row;
  const float* fetch;  // of the image: what will be the tile's first sample rows_ahead rows on
  size_t fetch_channel, fetch_row;
  const float* weights;  // at the first tap
  size_t weights_channel;
  int channels, rows, taps;  // input channels, r, s
  float* dst;
  const float* residual;  // null: none
  const float* bias;      // null: zero
  size_t dst_block;
  const Activation* activation;
};

// One tap of a row for all pixels: src is that of pixel 0.
template <int stride, int tile, int panel>
SN_INLINE void accumulate(Vf (&sum)[tile * panel], const float* src, const float* weights) {
  Vf v[panel];
  unroll<panel>([&](auto b) { v[b] = load(weights + b * lanes); });
  unroll<tile>([&](auto p) {
    const Vf x = set(src[p * stride]);
    unroll<panel>([&](auto b) { sum[b * tile + p] = fma(x, v[b], sum[b * tile + p]); });
  });
}

// taps: of a row, one next to the other; 0: as tap_x says. Taps that are known share the samples that pixels share,
// each of which is a load for every FMA otherwise where there is one block, and need no loop.
template <int stride, int tile, int panel, int taps>
[[gnu::flatten]] void compute_tile(const Tile& t) {
  Vf sum[tile * panel];
  unroll<panel>([&](auto b) {
    const Vf start = t.bias != nullptr ? load(t.bias + b * lanes) : zero();
    unroll<tile>([&](auto p) { sum[b * tile + p] = start; });
  });
  for (int c = 0; c < t.channels; ++c) {
    const float* w = t.weights + c * t.weights_channel;
    for (int r = 0; r < t.rows; ++r) {
      const float* row = t.src + c * t.src_channel + r * t.src_row;
      prefetch(t.fetch + c * t.fetch_channel + r * t.fetch_row);
      if constexpr (taps > 0) {
        unroll<taps>([&](auto s) { accumulate<stride, tile, panel>(sum, row + s, w + s * panel * lanes); });
        w += taps * panel * lanes;
      } else {
        for (int s = 0; s < t.taps; ++s, w += panel * lanes) {
          accumulate<stride, tile, panel>(sum, row + t.tap_x[s], w);
        }
      }
    }
  }
  finish_tile<panel, tile>(sum, true, t.activation, t.dst, t.residual, t.dst_block, lanes);
}

using ComputeTile = void (*)(const Tile&);
constexpr int max_stride = 2;  // that tiles read in place
constexpr int shared_taps = 3;
struct TileTable {
  ComputeTile compute[max_stride + 1][max_panel + 1][max_tile + 1] = {};
  ComputeTile shared[max_stride + 1][max_panel + 1][max_tile + 1] = {};  // for shared_taps, if registers allow it
};
constexpr TileTable tile_table() {
  TileTable table;
  unroll<max_stride>([&](auto i) {
    unroll<max_panel>([&](auto b) {
      constexpr int stride = i + 1, panel = b + 1;
      unroll<max_tile>([&](auto p) {
        table.compute[stride][panel][p + 1] = compute_tile<stride, p + 1, panel, 0>;
        if constexpr (registers >= 32) {
          table.shared[stride][panel][p + 1] = compute_tile<stride, p + 1, panel, shared_taps>;
        }
      });
    });
  });
  return table;
}
constexpr TileTable tiles = tile_table();

// A row's tiles: `longer` of them have one pixel more than the others, and come first.
struct Tiles {
  int count, length, longer;

  explicit Tiles(int pixels) : count(ceil_div(pixels, max_tile)), length(pixels / count), longer(pixels % count) {}
  int pixels(int i) const { return length + (i < longer ? 1 : 0); }
};

// Copies from the rows of src that a band of output rows needs, with the padding in place. Strides of one and two are
// read where they are, but for the first and last tile of a row, which may reach into the padding:
// [channel][row][first or last tile][column]. With other strides all columns are copied and sorted by x % stride_w, so
// that neighbours in a tile are neighbours in memory: [channel][row][phase][column].
struct Buffer {
  bool edges, left, right;  // only copies of edges; which of them are used
  int rows, columns;
  size_t row, channel;  // strides in floats

  Buffer(const ConvFirstArgs& a, int out_rows) {
    const int reach = (a.kernel_w - 1) * a.dilation_w + 1;
    const Tiles tiles(a.out_w);
    const int inside = a.w - reach + a.pad_left;  // the last pixel whose taps end inside, times the stride
    const int past = inside < 0 ? a.out_w : a.out_w - 1 - inside / a.stride_w;
    left = a.pad_left > 0;
    right = past > 0;
    if (tiles.count == 1) left = left || right;
    edges = a.stride_w <= max_stride && a.pad_left <= tiles.pixels(0) * a.stride_w && past <= tiles.length;
    rows = (out_rows - 1) * a.stride_h + (a.kernel_h - 1) * a.dilation_h + 1;
    if (rows > a.h) rows = a.h;
    columns = edges ? round_up((tiles.pixels(0) - 1) * a.stride_w + reach, 16) : a.out_w + (reach - 1) / a.stride_w;
    row = static_cast<size_t>(columns) * (edges ? 2 : a.stride_w);
    channel = rows * row;
  }
};

// to[q] = src[x + q * stride] for q < count, zero outside [0, width).
inline void copy_every(const float* src, int width, int x, int stride, float* to, int count) {
  int begin = x >= 0 ? 0 : ceil_div(-x, stride), end = x >= width ? 0 : ceil_div(width - x, stride);
  begin = begin < count ? begin : count;
  end = end < begin ? begin : end < count ? end : count;
  for (int q = 0; q < begin; ++q) to[q] = 0.0f;
  const float* from = src + x + static_cast<ptrdiff_t>(begin) * stride;
  for (int q = begin; q < end; ++q, from += stride) to[q] = *from;
  for (int q = end; q < count; ++q) to[q] = 0.0f;
}

inline void copy_band(const ConvFirstArgs& a, const Buffer& buffer, int y0, int rows, float* dst) {
  const int last = (a.out_w - Tiles(a.out_w).length) * a.stride_w - a.pad_left;  // column of the last tile
  for (int c = 0; c < a.in_channels; ++c) {
    for (int i = 0; i < rows; ++i) {
      const float* src = a.src + (static_cast<size_t>(c) * a.h + y0 + i) * a.w;
      float* to = dst + c * buffer.channel + i * buffer.row;
      if (buffer.edges) {
        if (buffer.left) copy_every(src, a.w, -a.pad_left, 1, to, buffer.columns);
        if (buffer.right) copy_every(src, a.w, last, 1, to + buffer.columns, buffer.columns);
      } else {
        for (int phase = 0; phase < a.stride_w; ++phase, to += buffer.columns) {
          copy_every(src, a.w, phase - a.pad_left, a.stride_w, to, buffer.columns);
        }
      }
    }
  }
}

// Output row of the tile: from row y of src on, which is row `copied` of the buffer.
inline void compute_row(const ConvFirstArgs& a, const Buffer& buffer, Tile t, int panel, int y, const float* copied) {
  const Tiles row(a.out_w);
  const int stride = buffer.edges ? a.stride_w : 1;
  const bool shared = registers >= 32 && buffer.edges && a.kernel_w == shared_taps && a.dilation_w == 1;
  const ComputeTile* compute = shared ? tiles.shared[stride][panel] : tiles.compute[stride][panel];
  const float* src = a.src + static_cast<ptrdiff_t>(y) * a.w - a.pad_left;
  const ptrdiff_t ahead = static_cast<ptrdiff_t>(rows_ahead) * a.stride_h * a.w;
  t.fetch_row = static_cast<size_t>(a.dilation_h) * a.w;
  t.fetch_channel = static_cast<size_t>(a.h) * a.w;
  for (int i = 0, x = 0; i < row.count; ++i) {
    const bool first = i == 0 && buffer.left, last = i + 1 == row.count && buffer.right;
    if (!buffer.edges || first || last) {
      t.src = !buffer.edges ? copied + x : first ? copied : copied + buffer.columns;
      t.src_row = a.dilation_h * buffer.row;
      t.src_channel = buffer.channel;
    } else {
      t.src = src + x * stride;
      t.src_row = t.fetch_row;
      t.src_channel = t.fetch_channel;
    }
    t.fetch = src + x * a.stride_w + ahead;
    const int pixels = row.pixels(i);
    compute[pixels](t);
    x += pixels;
    t.dst += pixels * lanes;
    if (t.residual != nullptr) t.residual += pixels * lanes;
  }
}

inline int band_rows(const ConvFirstArgs& a) { return a.row_block < a.out_h ? a.row_block : a.out_h; }
inline size_t taps_bytes(const ConvFirstArgs& a) { return round_up(a.kernel_w * static_cast<int>(sizeof(int)), 64); }
inline size_t scratch_bytes(const ConvFirstArgs& a) {
  return taps_bytes(a) + a.in_channels * Buffer(a, band_rows(a)).channel * sizeof(float);
}

inline void run(const ConvFirstArgs& a, int row_begin, int row_end, void* scratch) {
  const int step = band_rows(a), blocks = ceil_div(a.out_channels, lanes);
  const Buffer buffer(a, step);
  int* tap_x = static_cast<int*>(scratch);
  float* src = reinterpret_cast<float*>(static_cast<char*>(scratch) + taps_bytes(a));
  for (int k = 0; k < a.kernel_w; ++k) {
    const int x = k * a.dilation_w;
    tap_x[k] = buffer.edges ? x : x % a.stride_w * buffer.columns + x / a.stride_w;
  }
  const float* residual = a.epilogue.residual.f32();
  Tile t;
  t.tap_x = tap_x;
  t.channels = a.in_channels;
  t.taps = a.kernel_w;
  t.dst_block = static_cast<size_t>(a.out_h) * a.out_w * lanes;
  t.activation = &a.epilogue.activation;
  const int products = a.in_channels * a.kernel_h * a.kernel_w;
  for (int band = row_begin; band < row_end; band += step) {
    const int end = row_end - band < step ? row_end : band + step;
    int y0 = band * a.stride_h - a.pad_top;
    int y1 = (end - 1) * a.stride_h - a.pad_top + (a.kernel_h - 1) * a.dilation_h + 1;
    if (y0 < 0) y0 = 0;
    if (y1 > a.h) y1 = a.h;
    copy_band(a, buffer, y0, y1 - y0, src);
    for (int block = 0; block < blocks; block += max_panel) {
      const int panel = blocks - block < max_panel ? blocks - block : max_panel;
      const size_t weights_row = static_cast<size_t>(a.kernel_w) * panel * lanes;
      t.weights_channel = a.kernel_h * weights_row;
      t.bias = a.epilogue.bias != nullptr ? a.epilogue.bias + block * lanes : nullptr;
      for (int row = band; row < end; ++row) {
        const int y = row * a.stride_h - a.pad_top;
        const int r_begin = y >= 0 ? 0 : ceil_div(-y, a.dilation_h);
        int r_end = y >= a.h ? 0 : ceil_div(a.h - y, a.dilation_h);
        if (r_end > a.kernel_h) r_end = a.kernel_h;
        t.rows = r_end > r_begin ? r_end - r_begin : 0;
        // Without a row in the image nothing is read; the pointers stay inside all the same.
        const int from = t.rows > 0 ? y + r_begin * a.dilation_h : y0;
        t.weights = static_cast<const float*>(a.weights) + static_cast<size_t>(block) * products * lanes +
                    (t.rows > 0 ? r_begin * weights_row : 0);
        const size_t at = block * t.dst_block + static_cast<size_t>(row) * a.out_w * lanes;
        t.dst = a.dst + at;
        t.residual = residual != nullptr ? residual + at : nullptr;
        compute_row(a, buffer, t, panel, from, src + (from - y0) * buffer.row);
        for (int b = 0; b < panel; ++b) {
          const int left = a.out_channels - (block + b) * lanes;
          finish_rest(a.epilogue.activation, t.dst + b * t.dst_block, a.out_w, left < lanes ? left : lanes);
        }
      }
    }
  }
}

}  // namespace conv_first
}  // namespace softneuro::SN_ISA

namespace softneuro {

SN_KERNEL_TABLE(ConvFirstKernels, conv_first) = {
    .block = SN_ISA::lanes,
    .max_tile = SN_ISA::conv_first::max_tile,
    .scratch_bytes = SN_ISA::conv_first::scratch_bytes,
    .run = SN_ISA::conv_first::run,
};

}  // namespace softneuro
