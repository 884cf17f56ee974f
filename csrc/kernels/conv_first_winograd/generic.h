// conv_first_winograd over Vf: rows are encoded band by band, and the products of a few tiles summed in registers over
// vertical taps and channels. Contract: conv_first_winograd.h.
#pragma once

#include "kernels/conv_first_winograd/conv_first_winograd.h"
#include "kernels/integers.h"
#include "kernels/store/rest.h"
#include "kernels/store/tiles.h"
#include "kernels/unroll.h"
#include "kernels/winograd/passes.h"
#include "simd/hold.h"

namespace softneuro::SN_ISA {
namespace conv_first_winograd {

template <int kernel, int stride>
struct Form {
  static constexpr WinogradAxis axis = conv_first_winograd_axis(kernel, stride);
  static constexpr int outputs = axis.tile, positions = axis.positions();
  static constexpr int step = outputs * stride;                            // samples from one tile to the next
  static constexpr int encoded = (positions + lanes - 1) / lanes * lanes;  // floats of a tile, before and after
  static constexpr int tiles = (registers - 4) / positions;                // that are summed together
};

// Rows of `count` tiles, a multiple of lanes, to [tile][position]. Tiles are lanes in between.
template <int kernel, int stride>
[[gnu::flatten]] void encode_row(const float* src, int count, float* dst) {
  using F = Form<kernel, stride>;
  for (int first = 0; first < count; first += lanes, src += lanes * F::step, dst += lanes * F::encoded) {
    Vf d[F::encoded], v[F::encoded];
    unroll<F::encoded / lanes>([&](auto j) {
      Vf x[lanes];
      unroll<lanes>([&](auto i) { x[i] = load(src + i * F::step + j * lanes); });
      transpose(x);
      unroll<lanes>([&](auto i) { d[j * lanes + i] = x[i]; });
    });
    unroll<F::encoded - F::positions>([&](auto i) { v[F::positions + i] = zero(); });
    winograd::encode_axis<F::axis>(d, v);
    unroll<F::encoded / lanes>([&](auto j) {
      Vf x[lanes];
      unroll<lanes>([&](auto i) { x[i] = v[j * lanes + i]; });
      transpose(x);
      unroll<lanes>([&](auto i) { store(dst + i * F::encoded + j * lanes, x[i]); });
    });
  }
}

struct Tiles {
  const float* src;  // of the first tile, first row and channel
  size_t src_row, src_channel;
  const float* weights;  // at the first row
  int rows, channels;    // to sum
  float* dst;
  const float* residual;  // null: none
  const float* bias;      // null: zero
  int columns;            // of the last tile that are inside the output
  const Activation* activation;
};

template <int kernel, int stride, int tiles>
[[gnu::flatten]] void compute(const Tiles& t) {
  using F = Form<kernel, stride>;
  constexpr int outputs = F::outputs;
  for (int i = 0; i < tiles * outputs; ++i) prefetch_to_write(t.dst + i * lanes);
  Vf sum[tiles * F::positions];
  unroll<tiles * F::positions>([&](auto i) { sum[i] = zero(); });
  const float* w = t.weights;
  for (int r = 0; r < t.rows; ++r) {
    const float* src = t.src + r * t.src_row;
    for (int c = 0; c < t.channels; ++c, src += t.src_channel, w += F::positions * lanes) {
      unroll<F::positions>([&](auto p) {
        const Vf weight = hold(load(w + p * lanes));
        unroll<tiles>([&](auto i) {
          Vf& x = sum[i * F::positions + p];
          x = fma(set(src[i * F::encoded + p]), weight, x);
        });
      });
    }
  }
  const Vf bias = t.bias != nullptr ? load(t.bias) : zero();
  unroll<tiles>([&](auto tile) {
    Vf m[F::positions], y[outputs];
    unroll<F::positions>([&](auto i) { m[i] = sum[tile * F::positions + i]; });
    winograd::decode_axis<F::axis>(m, y);
    unroll<outputs>([&](auto i) { y[i] = y[i] + bias; });
    const int columns = tile + 1 < tiles ? outputs : t.columns;
    constexpr size_t at = tile * outputs * lanes;
    if (t.residual != nullptr) {
      unroll<outputs>([&](auto i) {
        if (i < columns) y[i] = y[i] + Reading<float>().value(t.residual + at + i * lanes);
      });
    }
    finish_sums(y, *t.activation);
    unroll<outputs>([&](auto i) {
      if (i < columns) Writing<float>().put(t.dst + at + i * lanes, y[i]);
    });
  });
}

// What runs one kernel width and stride.
struct Functions {
  int outputs = 0, positions = 0, step = 0, encoded = 0, tiles = 0;  // Form's
  void (*encode_row)(const float* src, int count, float* dst) = nullptr;
  void (*compute[(registers - 4) / 6 + 1])(const Tiles&) = {};
};
template <int kernel, int stride>
constexpr Functions functions() {
  using F = Form<kernel, stride>;
  Functions f{F::outputs, F::positions, F::step, F::encoded, F::tiles, {}, {}};
  if constexpr (F::tiles > 0) {
    f.encode_row = conv_first_winograd::encode_row<kernel, stride>;
    unroll<F::tiles>([&](auto i) { f.compute[i + 1] = conv_first_winograd::compute<kernel, stride, i + 1>; });
  }
  return f;
}
constexpr Functions forms[3][2] = {{functions<3, 1>(), functions<3, 2>()},
                                   {functions<5, 1>(), functions<5, 2>()},
                                   {functions<7, 1>(), functions<7, 2>()}};

inline bool has_transform(int kernel, int stride) {
  return (kernel == 3 || kernel == 5 || kernel == 7) && (stride == 1 || stride == 2) &&
         forms[(kernel - 3) / 2][stride - 1].tiles > 0;
}

// A band of encoded rows, [row][channel][tile][position], after the row that is being encoded.
struct Band {
  Functions f;
  int rows, tiles, padded_tiles;
  size_t raw, channel, row;  // floats: the row with its padding, strides of the encoded ones

  Band(const ConvFirstArgs& a, int out_rows) : f(forms[(a.kernel_w - 3) / 2][a.stride_w - 1]) {
    rows = (out_rows - 1) * a.stride_h + a.kernel_h;
    if (rows > a.h) rows = a.h;
    tiles = ceil_div(a.out_w, f.outputs);
    padded_tiles = round_up(tiles, lanes);
    raw = static_cast<size_t>(padded_tiles) * f.step + round_up(f.encoded, 16);
    if (raw < static_cast<size_t>(a.w) + a.pad_left) raw = static_cast<size_t>(round_up(a.w + a.pad_left, 16));
    channel = static_cast<size_t>(padded_tiles) * f.encoded;
    row = channel * a.in_channels;
  }
};

inline int band_rows(const ConvFirstArgs& a) { return a.row_block < a.out_h ? a.row_block : a.out_h; }
inline size_t scratch_bytes(const ConvFirstArgs& a) {
  const Band band(a, band_rows(a));
  return (band.raw + band.rows * band.row) * sizeof(float);
}

inline void encode_band(const ConvFirstArgs& a, const Band& band, int y0, int rows, float* raw, float* dst) {
  for (size_t i = 0; i < band.raw; ++i) raw[i] = 0.0f;
  for (int i = 0; i < rows; ++i) {
    for (int c = 0; c < a.in_channels; ++c, dst += band.channel) {
      __builtin_memcpy(raw + a.pad_left, a.src + (static_cast<size_t>(c) * a.h + y0 + i) * a.w, a.w * sizeof(float));
      band.f.encode_row(raw, band.padded_tiles, dst);
    }
  }
}

inline void compute_row(const ConvFirstArgs& a, const Band& band, Tiles t) {
  for (int tile = 0; tile < band.tiles;) {
    const int left = band.tiles - tile, count = left < band.f.tiles ? left : band.f.tiles;
    tile += count;
    t.columns = tile < band.tiles ? band.f.outputs : a.out_w - (tile - 1) * band.f.outputs;
    band.f.compute[count](t);
    t.src += count * band.f.encoded;
    t.dst += count * band.f.outputs * lanes;
    if (t.residual != nullptr) t.residual += count * band.f.outputs * lanes;
  }
}

inline void run(const ConvFirstArgs& a, int row_begin, int row_end, void* scratch) {
  const int step = band_rows(a), blocks = ceil_div(a.out_channels, lanes);
  const Band band(a, step);
  float *raw = static_cast<float*>(scratch), *encoded = raw + band.raw;
  const size_t weights_row = static_cast<size_t>(a.in_channels) * band.f.positions * lanes;
  const size_t plane = static_cast<size_t>(a.out_h) * a.out_w * lanes;
  const float* residual = a.epilogue.residual.f32();
  Tiles t;
  t.src_row = band.row;
  t.src_channel = band.channel;
  t.channels = a.in_channels;
  t.activation = &a.epilogue.activation;
  for (int first = row_begin; first < row_end; first += step) {
    const int end = row_end - first < step ? row_end : first + step;
    int y0 = first * a.stride_h - a.pad_top, y1 = (end - 1) * a.stride_h - a.pad_top + a.kernel_h;
    if (y0 < 0) y0 = 0;
    if (y1 > a.h) y1 = a.h;
    encode_band(a, band, y0, y1 - y0, raw, encoded);
    for (int block = 0; block < blocks; ++block) {
      const int left = a.out_channels - block * lanes;
      t.bias = a.epilogue.bias != nullptr ? a.epilogue.bias + block * lanes : nullptr;
      for (int row = first; row < end; ++row) {
        const int y = row * a.stride_h - a.pad_top;
        const int r_begin = y >= 0 ? 0 : -y;
        int r_end = y >= a.h ? 0 : a.h - y;
        if (r_end > a.kernel_h) r_end = a.kernel_h;
        t.rows = r_end > r_begin ? r_end - r_begin : 0;
        // Without a row in the image nothing is read; the pointers stay inside all the same.
        t.src = encoded + (t.rows > 0 ? (y + r_begin - y0) * band.row : 0);
        t.weights = static_cast<const float*>(a.weights) +
                    (static_cast<size_t>(block) * a.kernel_h + (t.rows > 0 ? r_begin : 0)) * weights_row;
        const size_t at = block * plane + static_cast<size_t>(row) * a.out_w * lanes;
        t.dst = a.dst + at;
        t.residual = residual != nullptr ? residual + at : nullptr;
        compute_row(a, band, t);
        finish_rest(a.epilogue.activation, t.dst, a.out_w, left < lanes ? left : lanes);
      }
    }
  }
}

}  // namespace conv_first_winograd
}  // namespace softneuro::SN_ISA

namespace softneuro {

SN_KERNEL_TABLE(ConvFirstWinogradKernels, conv_first_winograd) = {
    .block = SN_ISA::lanes,
    .has_transform = SN_ISA::conv_first_winograd::has_transform,
    .scratch_bytes = SN_ISA::conv_first_winograd::scratch_bytes,
    .run = SN_ISA::conv_first_winograd::run,
};

}  // namespace softneuro
