// conv_direct over Vf: which tiles make up rows, bands and panels. Layouts and contract: conv_direct.h.
#pragma once

#include "kernels/conv_direct/band.h"
#include "kernels/conv_direct/tiles.h"
#include "kernels/store/pixels.h"
#include "kernels/turn_rows.h"

namespace softneuro::SN_ISA {
namespace conv_direct {

// What a panel index stands for.
struct Panel {
  int group, first_block, blocks, out_block;  // out_block: in dst, counted over all groups
  int tail;                                   // channels in the last block
  const float* weights;                       // packed
  const float *source, *source_end;           // the same, or the rows that they are packed from
};
inline Panel find_panel(const ConvDirectArgs& args, int index) {
  const ConvDirectShape& s = args.shape;
  const int out_blocks = ceil_div(s.out_channels, lanes);
  const int per_group = ceil_div(out_blocks, args.tiling.panel);
  Panel p;
  p.group = index / per_group;
  p.first_block = index % per_group * args.tiling.panel;
  p.blocks = out_blocks - p.first_block < args.tiling.panel ? out_blocks - p.first_block : args.tiling.panel;
  p.out_block = p.group * out_blocks + p.first_block;
  const bool last = p.first_block + p.blocks == out_blocks;
  p.tail = last ? s.out_channels - (out_blocks - 1) * lanes : lanes;
  const size_t taps = static_cast<size_t>(s.kernel_h) * s.kernel_w;
  if (args.rows.weights != nullptr) {
    const size_t row = s.in_channels * taps;  // floats
    p.weights = args.panel_scratch;
    p.source = args.rows.weights + (static_cast<size_t>(p.group) * s.out_channels + p.first_block * lanes) * row;
    p.source_end = p.source + ((p.blocks - 1) * lanes + p.tail) * row;
  } else {
    const size_t per_block = round_up(s.in_channels, lanes) * taps * lanes;
    p.weights = p.source = args.weights + p.out_block * per_block;
    p.source_end = p.source + p.blocks * per_block;
  }
  return p;
}

// The lanes of one block, which are `rows` rows with `count` floats from channel 0 on, to every `wide` floats.
inline void pack_block(const ConvDirectShape& s, const float* src, const float* factors, int rows, int wide,
                       float* packed) {
  const int taps = s.kernel_h * s.kernel_w, depth = s.in_channels * taps;
  const auto place = [&](int c, int tap) {
    return packed + (static_cast<size_t>(c / lanes * taps + tap) * lanes + c % lanes) * wide;
  };
  int c = 0, tap = 0;
  turn_rows(src, depth, rows, depth, factors, [&](int) __attribute__((always_inline)) {
    float* to = place(c, tap);
    if (++tap == taps) tap = 0, ++c;
    return to;
  });
  for (; c < round_up(s.in_channels, lanes); ++c) {
    for (tap = 0; tap < taps; ++tap) store(place(c, tap), zero());
  }
}

inline void pack_panel(const ConvDirectShape& s, const Panel& panel, const WeightRows& rows, float* packed) {
  const size_t row = static_cast<size_t>(s.in_channels) * s.kernel_h * s.kernel_w;
  const int channel = panel.group * s.out_channels + panel.first_block * lanes;
  for (int b = 0; b < panel.blocks; ++b) {
    const int first = channel + b * lanes;
    pack_block(s, rows.weights + first * row, rows.factors == nullptr ? nullptr : rows.factors + first,
               b + 1 == panel.blocks ? panel.tail : lanes, panel.blocks * lanes, packed + b * lanes);
  }
}

inline void pack(const ConvDirectShape& shape, int panel, const WeightRows& rows, float* packed) {
  ConvDirectArgs args{};
  args.shape = shape;
  args.tiling.panel = panel;
  args.weights = packed;
  const int panels = shape.groups * ceil_div(ceil_div(shape.out_channels, lanes), panel);
  for (int index = 0; index < panels; ++index) {
    const Panel one = find_panel(args, index);
    pack_panel(shape, one, rows, packed + (one.weights - packed));
  }
}

// Where a task's weights end in the source.
inline const float* source_end(const ConvDirectArgs& args, int panel_begin, int panel_end) {
  return panel_begin < panel_end ? find_panel(args, panel_end - 1).source_end : nullptr;
}

// Input channels of the last block, in fours.
inline int last_channels(int in_channels) {
  return round_up(in_channels - (ceil_div(in_channels, lanes) - 1) * lanes, 4);
}

// The first tiles of some input blocks fetch the weights of as many that come next, a line for each channel and tap, so
// that weights from far away arrive at an even rate and not all of them when they are wanted; where tiles are few, all
// do, and leave lines out. They are packed in the order of use; where panels are packed in turn, it is the next panel's
// rows that are fetched. begins: this is the first panel, whose weights nothing has fetched.
inline void fetch_ahead(Tile& t, const Panel& panel, int first_block, const float* end, int tiles, bool begins) {
  constexpr int line = 16;  // floats
  const bool packed = panel.source == panel.weights;
  const auto own = static_cast<ptrdiff_t>(t.blocks * t.weights_block);
  t.next = panel.source + (packed ? own : panel.source_end - panel.source);
  t.next += first_block * t.weights_block;
  t.next_end = end - t.next < own ? end : t.next + own;
  const int even = ceil_div(panel.blocks * lanes, tiles);
  t.fetch = t.next >= end ? 0 : even < line ? line : even;
  t.far = packed && (begins || even > line);
}

inline void finish_panel(const PixelStore& to, const Panel& panel, int pixel, int pixels) {
  for (int b = 0; b < panel.blocks; ++b) {
    to.finish(panel.out_block + b, pixel, pixels, b + 1 == panel.blocks ? panel.tail : lanes);
  }
}

inline void copy_band(const ConvDirectArgs& args, const Buffer& buffer, int group, int y0, int rows, float* dst) {
  const ConvDirectShape& s = args.shape;
  const int in_blocks = ceil_div(s.in_channels, lanes);
  const size_t plane = static_cast<size_t>(s.h) * s.w * lanes;
  for (int cb = 0; cb < in_blocks; ++cb) {
    const float* src = args.src + (group * in_blocks + cb) * plane;
    for (int i = 0; i < rows; ++i) {
      const int y = y0 + i;
      if (!tap_reaches(y + s.pad_top, s.kernel_h, s.dilation_h, s.stride_h)) continue;
      copy_row(s, buffer, src + static_cast<size_t>(y) * s.w * lanes, dst + cb * buffer.block + i * buffer.row);
    }
  }
}

// All output rows of a band for one panel; buffer row 0 is row y0 of src.
inline void compute_band(const ConvDirectArgs& args, const Buffer& buffer, const float* src, const int* tap_x, int y0,
                         int row_begin, int row_end, const Panel& panel, const float* end, bool begins) {
  const ConvDirectShape& s = args.shape;
  const int in_blocks = ceil_div(s.in_channels, lanes);
  const size_t plane = static_cast<size_t>(s.out_h) * s.out_w * lanes;
  PixelStore to(args.epilogue, args.dst, plane, args.sums, static_cast<size_t>(row_end - row_begin) * s.out_w * lanes);
  to.begin(panel.out_block, row_begin * s.out_w);
  Tile t;
  t.tap_x = tap_x;
  t.fetch_src = false;
  t.fetch_dst = to.has_residual();
  t.src_block = buffer.block;
  t.src_row = s.dilation_h * buffer.row;
  t.weights_row = static_cast<size_t>(s.kernel_w) * lanes * panel.blocks * lanes;
  t.weights_block = s.kernel_h * t.weights_row;
  t.taps = s.kernel_w;
  t.bias = to.bias(panel.out_block);
  t.dst_block = to.block();
  t.activation = to.activation();
  for (int cb = 0; cb < in_blocks; cb += args.tiling.c_block) {
    t.blocks = in_blocks - cb < args.tiling.c_block ? in_blocks - cb : args.tiling.c_block;
    t.first = cb == 0;
    t.last = cb + t.blocks == in_blocks;
    t.last_block = t.last ? last_channels(s.in_channels) : lanes;
    const float* weights = panel.weights + cb * t.weights_block;
    fetch_ahead(t, panel, cb, end, (row_end - row_begin) * ceil_div(s.out_w, max_tile(panel.blocks)), begins);
    for (int row = row_begin; row < row_end; ++row) {
      const int y = row * s.stride_h - s.pad_top;
      const int r_begin = y >= 0 ? 0 : ceil_div(-y, s.dilation_h);
      int r_end = y >= s.h ? 0 : ceil_div(s.h - y, s.dilation_h);
      if (r_end > s.kernel_h) r_end = s.kernel_h;
      t.rows = r_end > r_begin ? r_end - r_begin : 0;
      // Without a row in the image nothing is read; the pointers stay inside all the same.
      t.src = src + cb * buffer.block + (t.rows > 0 ? (y + r_begin * s.dilation_h - y0) * buffer.row : 0);
      t.weights = weights + (t.rows > 0 ? r_begin * t.weights_row : 0);
      t.dst = to.dst(panel.out_block, row * s.out_w);
      t.residual = to.residual(panel.out_block, row * s.out_w);
      const bool far = t.far && t.rows < s.kernel_h;  // some taps were not read
      compute_run(t, panel.blocks, panel.tail, s.out_w);
      t.far = far;
      if (t.last) finish_panel(to, panel, row * s.out_w, s.out_w);
    }
  }
}

inline int band_rows(const ConvDirectShape& shape, const ConvDirectTiling& tiling) {
  return tiling.row_block < shape.out_h ? tiling.row_block : shape.out_h;
}

inline size_t taps_bytes(const ConvDirectShape& s) { return round_up(s.kernel_w * static_cast<int>(sizeof(int)), 64); }

inline size_t scratch_bytes(const ConvDirectShape& shape, const ConvDirectTiling& tiling) {
  const Buffer buffer(shape, band_rows(shape, tiling));
  return taps_bytes(shape) + ceil_div(shape.in_channels, lanes) * buffer.block * sizeof(float);
}

inline void run(const ConvDirectArgs& args, int panel_begin, int panel_end, int row_begin, int row_end, void* scratch) {
  const ConvDirectShape& s = args.shape;
  const int step = band_rows(s, args.tiling);
  const Buffer buffer(s, step);
  int* tap_x = static_cast<int*>(scratch);
  float* src = reinterpret_cast<float*>(static_cast<char*>(scratch) + taps_bytes(s));
  for (int k = 0; k < s.kernel_w; ++k) tap_x[k] = buffer.tap(s, k);
  const float* end = source_end(args, panel_begin, panel_end);
  for (int row = row_begin; row < row_end; row += step) {
    const int band_end = row_end - row < step ? row_end : row + step;
    int y0 = row * s.stride_h - s.pad_top;
    int y1 = (band_end - 1) * s.stride_h - s.pad_top + (s.kernel_h - 1) * s.dilation_h + 1;
    if (y0 < 0) y0 = 0;
    if (y1 > s.h) y1 = s.h;
    int group = -1;
    for (int index = panel_begin; index < panel_end; ++index) {
      const Panel panel = find_panel(args, index);
      if (panel.group != group) copy_band(args, buffer, group = panel.group, y0, y1 - y0, src);
      if (args.rows.weights != nullptr) pack_panel(s, panel, args.rows, args.panel_scratch);
      compute_band(args, buffer, src, tap_x, y0, row, band_end, panel, end, index == panel_begin);
    }
  }
}

// Whether what tiles of 1x1 kernels write, of so many pixels by panels, and the residual are asked for while they sum.
// With 16 registers that loop is so much slower than compute_near's that it never pays; where stores hide misses, for
// residuals from memory.
inline bool fetches_dst(const ConvDirectArgs& args, int64_t pixels) {
  if (registers < 32 || !args.epilogue.is_float32()) return false;
  const int64_t bytes = pixels * args.tiling.panel * lanes * static_cast<int64_t>(sizeof(float));
  constexpr int64_t mib = 1 << 20;
  const bool residual = args.epilogue.residual.data != nullptr;
  return stores_hide_misses() ? residual && bytes > 8 * mib : residual || bytes > 2 * mib;
}

inline void run_pointwise(const ConvDirectArgs& args, int panel_begin, int panel_end, int pixel_begin, int pixel_end) {
  const ConvDirectShape& s = args.shape;
  const int in_blocks = ceil_div(s.in_channels, lanes);
  const size_t dense = static_cast<size_t>(s.h) * s.w * lanes;
  const size_t src_plane = args.src_plane != 0 ? args.src_plane : dense;
  const size_t dst_plane = args.dst_plane != 0 ? args.dst_plane : dense;
  constexpr int tap_x[1] = {0};
  PixelStore to(args.epilogue, args.dst, dst_plane, args.sums, static_cast<size_t>(args.tiling.row_block) * lanes);
  Tile t;
  t.tap_x = tap_x;
  t.src_block = src_plane;
  t.dst_block = to.block();
  t.src_row = t.weights_row = 0;
  t.rows = t.taps = 1;
  t.activation = to.activation();
  const float* end = source_end(args, panel_begin, panel_end);
  t.fetch_dst = fetches_dst(args, static_cast<int64_t>(panel_end - panel_begin) * (pixel_end - pixel_begin));
  for (int pixel = pixel_begin; pixel < pixel_end; pixel += args.tiling.row_block) {
    const int pixels = pixel_end - pixel < args.tiling.row_block ? pixel_end - pixel : args.tiling.row_block;
    for (int index = panel_begin; index < panel_end; ++index) {
      const Panel panel = find_panel(args, index);
      if (args.rows.weights != nullptr) pack_panel(s, panel, args.rows, args.panel_scratch);
      to.begin(panel.out_block, pixel);
      t.weights_block = static_cast<size_t>(lanes) * panel.blocks * lanes;
      t.bias = to.bias(panel.out_block);
      t.dst = to.dst(panel.out_block, pixel);
      t.residual = to.residual(panel.out_block, pixel);
      for (int cb = 0; cb < in_blocks; cb += args.tiling.c_block) {
        t.blocks = in_blocks - cb < args.tiling.c_block ? in_blocks - cb : args.tiling.c_block;
        t.first = cb == 0;
        t.last = cb + t.blocks == in_blocks;
        t.last_block = t.last ? last_channels(s.in_channels) : lanes;
        t.src = args.src + (panel.group * in_blocks + cb) * src_plane + static_cast<size_t>(pixel) * lanes;
        t.weights = panel.weights + cb * t.weights_block;
        fetch_ahead(t, panel, cb, end, ceil_div(pixels, max_tile(panel.blocks)), index == panel_begin);
        t.fetch_src = !args.src_near && index == panel_begin;
        compute_run(t, panel.blocks, panel.tail, pixels);
      }
      finish_panel(to, panel, pixel, pixels);
    }
  }
}

}  // namespace conv_direct
}  // namespace softneuro::SN_ISA

namespace softneuro {

SN_KERNEL_TABLE(ConvDirectKernels, conv_direct) = {
    .block = SN_ISA::lanes,
    .max_panel = SN_ISA::conv_direct::max_panel,
    .pack = SN_ISA::conv_direct::pack,
    .scratch_bytes = SN_ISA::conv_direct::scratch_bytes,
    .run = SN_ISA::conv_direct::run,
    .run_pointwise = SN_ISA::conv_direct::run_pointwise,
};

}  // namespace softneuro
