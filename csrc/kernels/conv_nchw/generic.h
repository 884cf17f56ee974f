// conv_nchw over Vf: a tile of vectors of one output row by up to four output channels in registers. Layouts and
// contract: conv_nchw.h.
#pragma once

#include "kernels/conv_nchw/conv_nchw.h"
#include "kernels/integers.h"
#include "kernels/store/policy.h"
#include "kernels/store/rest.h"
#include "kernels/unroll.h"

namespace softneuro::SN_ISA {
namespace conv_nchw {

constexpr int max_panel = conv_nchw_panel;
// Vectors that are summed together, of several rows where they are short, so that chains of sums hide the latency.
constexpr int max_vectors = registers >= 32 ? 6 : 3;

// The rows of src that a band of output rows needs, padding in place and columns sorted by x % stride_w, so that
// neighbours in dst are neighbours in memory: [channel][row][phase][column].
struct Buffer {
  int rows, columns;
  size_t row, plane;  // strides in floats

  Buffer(const ConvNchwShape& s, int out_rows) {
    rows = (out_rows - 1) * s.stride_h + (s.kernel_h - 1) * s.dilation_h + 1;
    columns = round_up(s.out_w, lanes) + (s.kernel_w - 1) * s.dilation_w / s.stride_w;
    row = static_cast<size_t>(columns) * s.stride_w;
    plane = row * rows;
  }
};

struct Tile {
  const float* src;  // first tap of pixel 0
  const int* tap_x;  // offset of each s
  size_t src_plane, src_row;
  const float* weights;
  int channels, rows, taps;
  float* dst;
  const float* residual;  // null: none
  const float* bias;      // null: zero
  size_t dst_plane;
  // Each vector has offsets in src and dst, and pixels.
  ptrdiff_t src_at[max_vectors], dst_at[max_vectors];
  int pixels[max_vectors];
  ClampBounds bounds;
};

template <int panel, int vectors>
[[gnu::flatten]] void compute_tile(const Tile& t) {
  Vf sum[panel * vectors];
  unroll<panel>([&](auto k) {
    const Vf start = t.bias != nullptr ? set(t.bias[k]) : zero();
    unroll<vectors>([&](auto v) { sum[k * vectors + v] = start; });
  });
  ptrdiff_t at[vectors];
  unroll<vectors>([&](auto v) { at[v] = t.src_at[v]; });
  const float* w = t.weights;
  for (int c = 0; c < t.channels; ++c) {
    for (int r = 0; r < t.rows; ++r) {
      const float* row = t.src + c * t.src_plane + r * t.src_row;
      for (int s = 0; s < t.taps; ++s, w += panel) {
        const float* src = row + t.tap_x[s];
        Vf x[vectors];
        unroll<vectors>([&](auto v) { x[v] = load(src + at[v]); });
        unroll<panel>([&](auto k) {
          const Vf weight = set(w[k]);
          unroll<vectors>([&](auto v) { sum[k * vectors + v] = fma(x[v], weight, sum[k * vectors + v]); });
        });
      }
    }
  }
  const Vf lo = set(t.bounds.lo), hi = set(t.bounds.hi);
  unroll<vectors>([&](auto v) {
    const int n = t.pixels[v];
    unroll<panel>([&](auto k) {
      const size_t to = k * t.dst_plane + t.dst_at[v];
      Vf y = sum[k * vectors + v];
      if (t.residual != nullptr)
        y = n == lanes ? y + Reading<float>().value(t.residual + to) : y + Reading<float>().value(t.residual + to, n);
      y = clamp(y, lo, hi);
      n == lanes ? Writing<float>().put(t.dst + to, y) : Writing<float>().put(t.dst + to, y, n);
    });
  });
}

using ComputeTile = void (*)(const Tile&);
struct TileTable {
  ComputeTile compute[max_panel + 1][max_vectors + 1] = {};
};
constexpr TileTable tile_table() {
  TileTable table;
  unroll<max_panel>(
      [&](auto k) { unroll<max_vectors>([&](auto v) { table.compute[k + 1][v + 1] = compute_tile<k + 1, v + 1>; }); });
  return table;
}
constexpr TileTable tiles = tile_table();

// Rows of output pixels, vector by vector, cut in tiles of nearly equal length.
inline void compute_rows(Tile t, const ConvNchwShape& s, const Buffer& buffer, int rows, int panel) {
  const int per_row = ceil_div(s.out_w, lanes), vectors = per_row * rows;
  const int count = ceil_div(vectors, max_vectors), length = vectors / count, longer = vectors % count;
  int vector = 0;
  for (int i = 0; i < count; ++i) {
    const int step = length + (i < longer ? 1 : 0);
    for (int v = 0; v < step; ++v, ++vector) {
      const int y = vector / per_row, x = vector % per_row * lanes;
      t.src_at[v] = static_cast<ptrdiff_t>(y * s.stride_h * buffer.row) + x;
      t.dst_at[v] = static_cast<ptrdiff_t>(y) * s.out_w + x;
      t.pixels[v] = s.out_w - x < lanes ? s.out_w - x : lanes;
    }
    tiles.compute[panel][step](t);
  }
}

inline void copy_row(const ConvNchwShape& s, const Buffer& buffer, const float* src, float* dst) {
  for (int phase = 0; phase < s.stride_w; ++phase, dst += buffer.columns) {
    const int x = phase - s.pad_left;  // of column 0
    int begin = x >= 0 ? 0 : ceil_div(-x, s.stride_w), end = x >= s.w ? 0 : ceil_div(s.w - x, s.stride_w);
    if (end > buffer.columns) end = buffer.columns;
    if (begin > end) begin = end;
    int q = 0;
    for (; q < begin; ++q) dst[q] = 0.0f;
    if (s.stride_w == 1) {
      for (; q + lanes <= end; q += lanes) store(dst + q, load(src + x + q));
    }
    for (; q < end; ++q) dst[q] = src[x + q * s.stride_w];
    for (; q < buffer.columns; ++q) dst[q] = 0.0f;
  }
}

// Rows [y, y + rows) of a group's planes; those outside the image are zero.
inline void copy_band(const ConvNchwArgs& args, const Buffer& buffer, int group, int y, int rows, float* dst) {
  const ConvNchwShape& s = args.shape;
  const float* src = args.src + static_cast<size_t>(group) * s.in_channels * s.h * s.w;
  for (int c = 0; c < s.in_channels; ++c) {
    for (int i = 0; i < rows; ++i) {
      float* row = dst + c * buffer.plane + i * buffer.row;
      if (y + i >= 0 && y + i < s.h) {
        copy_row(s, buffer, src + (static_cast<size_t>(c) * s.h + y + i) * s.w, row);
      } else {
        for (size_t x = 0; x < buffer.row; ++x) row[x] = 0.0f;
      }
    }
  }
}

inline size_t taps_bytes(const ConvNchwShape& s) { return round_up(s.kernel_w * static_cast<int>(sizeof(int)), 64); }

inline size_t scratch_bytes(const ConvNchwShape& shape, int row_block) {
  const Buffer buffer(shape, row_block < shape.out_h ? row_block : shape.out_h);
  return taps_bytes(shape) + shape.in_channels * buffer.plane * sizeof(float);
}

inline void run(const ConvNchwArgs& args, int panel_begin, int panel_end, int row_begin, int row_end, void* scratch) {
  const ConvNchwShape& s = args.shape;
  const int step = args.row_block < s.out_h ? args.row_block : s.out_h;
  const Buffer buffer(s, step);
  int* tap_x = static_cast<int*>(scratch);
  float* src = reinterpret_cast<float*>(static_cast<char*>(scratch) + taps_bytes(s));
  for (int k = 0; k < s.kernel_w; ++k) {
    const int x = k * s.dilation_w;
    tap_x[k] = x % s.stride_w * buffer.columns + x / s.stride_w;
  }
  const int per_group = ceil_div(s.out_channels, max_panel);
  const size_t filter = static_cast<size_t>(s.in_channels) * s.kernel_h * s.kernel_w;
  const Activation& activation = args.epilogue.activation;
  const float* residual = args.epilogue.residual.f32();
  Tile t;
  t.tap_x = tap_x;
  t.src_plane = buffer.plane;
  t.src_row = s.dilation_h * buffer.row;
  t.channels = s.in_channels;
  t.rows = s.kernel_h;
  t.taps = s.kernel_w;
  t.dst_plane = static_cast<size_t>(s.out_h) * s.out_w;
  t.bounds = clamp_bounds(activation);
  for (int row = row_begin; row < row_end; row += step) {
    const int end = row_end - row < step ? row_end : row + step;
    const int in_rows = (end - row - 1) * s.stride_h + (s.kernel_h - 1) * s.dilation_h + 1;
    int group = -1;
    for (int index = panel_begin; index < panel_end; ++index) {
      if (index / per_group != group) {
        group = index / per_group;
        copy_band(args, buffer, group, row * s.stride_h - s.pad_top, in_rows, src);
      }
      const int first = index % per_group * max_panel;
      const int panel = s.out_channels - first < max_panel ? s.out_channels - first : max_panel;
      const int channel = group * s.out_channels + first;
      t.weights = args.weights + channel * filter;
      t.bias = args.epilogue.bias != nullptr ? args.epilogue.bias + channel : nullptr;
      // Few enough rows at a time that activations find them in L1.
      const int together = ceil_div(max_vectors, ceil_div(s.out_w, lanes));
      for (int y = row, rows; y < end; y += rows) {
        rows = end - y < together ? end - y : together;
        const size_t at = channel * t.dst_plane + static_cast<size_t>(y) * s.out_w;
        t.src = src + (y - row) * s.stride_h * buffer.row;
        t.dst = args.dst + at;
        t.residual = residual != nullptr ? residual + at : nullptr;
        compute_rows(t, s, buffer, rows, panel);
        if (is_clamp(activation.kind)) continue;
        for (int k = 0; k < panel; ++k) {
          float* done = t.dst + k * t.dst_plane;
          activate_row(done, done, static_cast<size_t>(rows) * s.out_w, activation);
        }
      }
    }
  }
}

}  // namespace conv_nchw
}  // namespace softneuro::SN_ISA

namespace softneuro {

SN_KERNEL_TABLE(ConvNchwKernels, conv_nchw) = {
    .scratch_bytes = SN_ISA::conv_nchw::scratch_bytes,
    .run = SN_ISA::conv_nchw::run,
};

}  // namespace softneuro
