// conv_bfloat16 over Tiles. Contract: conv_bfloat16.h.
#pragma once

#include "kernels/conv_bfloat16/conv_bfloat16.h"
#include "kernels/conv_bfloat16/tiles.h"
#include "kernels/finish_row.h"
#include "kernels/integers.h"
#include "kernels/unroll.h"

namespace softneuro::SN_ISA {
namespace conv_bfloat16 {

constexpr size_t weight_tile = lanes * row_bytes;
constexpr int most_sums = 4;  // tiles

// A plane holds one phase of one pair of input blocks; the phases of a pair follow each other. A pixel is a row of each
// part.
struct Planes {
  int width, height;          // of a phase
  size_t pixel, phase, pair;  // bytes
  int pairs;

  Planes(const ConvBfloat16Shape& s, int rows)
      : width(s.x.samples(s.x.out)),
        height(s.y.samples(rows)),
        pixel(static_cast<size_t>(s.parts) * row_bytes),
        // What the last tile reads past the last output belongs to no output.
        phase((static_cast<size_t>(width) * height + 2 * tile_rows) * pixel),
        pair(phase * s.y.phases() * s.x.phases()),
        pairs(ceil_div(s.in_channels, 2 * lanes)) {}
};

struct Scratch {
  size_t* taps;  // where each begins in a pair's planes, bytes
  float* sums;   // two sets of tiles
  char* planes;
  size_t bytes = 0;

  Scratch(const ConvBfloat16Shape& s, int rows, char* memory) {
    const auto take = [&](size_t count) {
      char* at = memory + bytes;
      bytes += (count + 63) / 64 * 64;
      return at;
    };
    const Planes layout(s, rows);
    taps = reinterpret_cast<size_t*>(take(sizeof(size_t) * s.taps()));
    sums = reinterpret_cast<float*>(take(2 * most_sums * tile_rows * row_bytes));
    planes = take(layout.pair * layout.pairs);
  }
};

inline size_t scratch_bytes(const ConvBfloat16Shape& shape, int rows) { return Scratch(shape, rows, nullptr).bytes; }

struct Band {
  const ConvBfloat16Args& args;
  const Planes& planes;
  const Scratch& scratch;
  int row, rows;  // of the output
};

template <int parts>
SN_INLINE void split_pixel(const float* src, size_t block, int blocks, char* to) {
  constexpr size_t row = 2 * lanes;
  auto* const first = reinterpret_cast<uint16_t*>(to);
  split<parts>(src, first, row);
  if (blocks > 1) {
    split<parts>(src + block, first + lanes, row);
  } else {
    for (int part = 0; part < parts; ++part) __builtin_memset(first + part * row + lanes, 0, lanes * 2);
  }
}

// The last channels of a pixel that has no others behind them.
template <int parts>
SN_INLINE void split_last(const float* src, int channels, char* to) {
  float padded[2 * lanes];
  store(padded, load_n(src, channels < lanes ? channels : lanes));
  store(padded + lanes, channels > lanes ? load_n(src + lanes, channels - lanes) : zero());
  split_pixel<parts>(padded, lanes, 2, to);
}

template <int parts>
inline void fill(const Band& band) {
  const ConvBfloat16Shape& s = band.args.shape;
  const Planes& planes = band.planes;
  const bool blocked = band.args.src_pixel == 0;
  const size_t pixel = blocked ? lanes : band.args.src_pixel;
  const size_t block = blocked ? static_cast<size_t>(s.y.in) * s.x.in * lanes : lanes;
  const int in_blocks = ceil_div(s.in_channels, lanes), height = s.y.samples(band.rows);
  for (int p = 0; p < planes.pairs; ++p) {
    const float* src = band.args.src + 2 * p * block;
    const int blocks = in_blocks - 2 * p, channels = s.in_channels - 2 * p * lanes;
    for (int phase = 0; phase < s.y.phases() * s.x.phases(); ++phase) {
      char* to = band.scratch.planes + p * planes.pair + phase * planes.phase;
      const int first_y = phase / s.x.phases() * s.y.dilation % s.y.stride - s.y.pad + band.row * s.y.stride;
      const int first_x = phase % s.x.phases() * s.x.dilation % s.x.stride - s.x.pad;
      for (int i = 0; i < height; ++i) {
        const int y = first_y + i * s.y.stride;
        for (int j = 0; j < planes.width; ++j, to += planes.pixel) {
          const int x = first_x + j * s.x.stride;
          if (y < 0 || y >= s.y.in || x < 0 || x >= s.x.in) {
            __builtin_memset(to, 0, planes.pixel);
          } else if (blocked || channels >= 2 * lanes) {
            split_pixel<parts>(src + (static_cast<size_t>(y) * s.x.in + x) * pixel, block, blocks, to);
          } else {
            split_last<parts>(src + (static_cast<size_t>(y) * s.x.in + x) * pixel, channels, to);
          }
        }
      }
    }
  }
}

// Sums that are still to be finished, a few vectors at each step of the next ones' products: tiles' units and vectors'
// work side by side.
class Unfinished {
 public:
  Unfinished(const ConvBfloat16Args& args, float* memory)
      : epilogue_(args.epilogue),
        bounds_(clamp_bounds(args.epilogue.activation)),
        costly_(!is_clamp(args.epilogue.activation.kind)),
        blocked_(args.dst_pixel == 0),
        pixel_(blocked_ ? lanes : args.dst_pixel),
        plane_(blocked_ ? static_cast<size_t>(args.shape.y.out) * args.shape.x.out * lanes : lanes),
        dst_(args.dst),
        sums_(memory),
        next_(memory + most_sums * tile_rows * lanes) {}

  // Where the next sums are stored, while the last are being finished.
  SN_INLINE float* next_sums() const { return next_; }

  // Those of m tiles of outputs from number `at` on and n output blocks, by block.
  template <int m, int n>
  SN_INLINE void add(const Band& band, int output_block, int at) {
    const ConvBfloat16Shape& s = band.args.shape;
    first_ = output_block * plane_ + static_cast<size_t>(band.row) * s.x.out * pixel_;
    channels_ = s.out_channels - output_block * lanes;
    rows_ = m * tile_rows;
    blocks_ = n;
    block_ = 0;
    width_ = band.planes.width;
    out_ = s.x.out;
    // Without gaps all outputs are one row.
    if (width_ == out_) width_ = out_ = band.rows * out_;
    first_y_ = at / width_, first_x_ = at % width_;
    last_y_ = s.x.out == out_ ? band.rows : 1;
    float* const sums = sums_;
    sums_ = next_;
    next_ = sums;
    begin_block();
  }

  SN_INLINE void step(int most) {
    while (block_ < blocks_) {
      const int left = row_ < rows_ && y_ < last_y_ ? out_ - x_ : 0, here = rows_ - row_ < left ? rows_ - row_ : left;
      if (here <= 0) {
        if (row_ < rows_ && y_ < last_y_) {
          row_ += width_ - x_, x_ = 0, ++y_;
        } else {
          ++block_;
          begin_block();
        }
        continue;
      }
      if (most <= 0) return;
      const int pixels = here < most ? here : most;
      finish_pixels(pixels);
      row_ += pixels, x_ += pixels, most -= pixels;
    }
  }
  void finish() { step(blocks_ * rows_); }

 private:
  SN_INLINE void begin_block() { row_ = 0, y_ = first_y_, x_ = first_x_; }

  SN_INLINE void finish_pixels(int pixels) {
    const size_t at = first_ + block_ * plane_ + (static_cast<size_t>(y_) * out_ + x_) * pixel_;
    const float* const from = sums_ + (block_ * rows_ + row_) * lanes;
    float* const to = dst_ + at;
    const int left = channels_ - block_ * lanes, channels = left < lanes ? left : lanes;
    const Vf lo = set(bounds_.lo), hi = set(bounds_.hi);
    if (channels < lanes && !blocked_) {
      for (int p = 0; p < pixels; ++p) {
        Vf sum = load(from + p * lanes);
        if (epilogue_.residual != nullptr) sum = sum + load_n(epilogue_.residual + at + p * pixel_, channels);
        store_n(to + p * pixel_, clamp(sum, lo, hi), channels);
      }
    } else if (epilogue_.residual != nullptr) {
      const float* const residual = epilogue_.residual + at;
      for (int p = 0; p < pixels; ++p) {
        store(to + p * pixel_, clamp(load(from + p * lanes) + load(residual + p * pixel_), lo, hi));
      }
    } else {
      for (int p = 0; p < pixels; ++p) store(to + p * pixel_, clamp(load(from + p * lanes), lo, hi));
    }
    if (blocked_) {
      if (costly_ || channels < lanes) finish_row(epilogue_.activation, to, pixels, channels);
    } else if (costly_) {
      for (int p = 0; p < pixels; ++p) {
        activate_row(to + p * pixel_, to + p * pixel_, static_cast<size_t>(channels), epilogue_.activation);
      }
    }
  }

  const Epilogue& epilogue_;
  ClampBounds bounds_;
  bool costly_, blocked_;
  size_t pixel_, plane_;  // floats from pixel to pixel and from block to block
  float *dst_, *sums_, *next_;
  size_t first_ = 0;           // where the band's first output of the first block is
  int channels_ = 0;           // from the first block on
  int rows_ = 0, blocks_ = 0;  // of sums; row by row of each block
  int width_ = 0, out_ = 0, last_y_ = 0, first_y_ = 0, first_x_ = 0;  // outputs as they are counted
  int block_ = 0, row_ = 0, y_ = 0, x_ = 0;                           // the next one's
};

// Tiles 0 ... 3 are sums: tile a * n + b of the a-th tile of pixels and the b-th block of output channels. Pixels are
// in tiles 4 and 5, weights in 6 and 7.

// One pair of input blocks and one tap: one part of either side at a time, in an order that loads few tiles.
template <int parts, int m>
SN_INLINE void accumulate_pair(Tiles& tiles, const char* pixels, const char* weights) {
  constexpr size_t pixel = parts * row_bytes;
  const auto take_pixels = [&](int part) __attribute__((always_inline)) {
    tiles.load<4>(pixels + part * row_bytes, pixel);
    if constexpr (m == 2) tiles.load<5>(pixels + part * row_bytes + tile_rows * pixel, pixel);
  };
  const auto take_weights = [&](int part) __attribute__((always_inline)) {
    tiles.load<6, lanes>(weights + 2 * part * weight_tile, row_bytes);
    tiles.load<7, lanes>(weights + (2 * part + 1) * weight_tile, row_bytes);
  };
  const auto multiply = [&]() __attribute__((always_inline)) {
    tiles.multiply<0, 4, 6>();
    tiles.multiply<1, 4, 7>();
    if constexpr (m == 2) tiles.multiply<2, 5, 6>(), tiles.multiply<3, 5, 7>();
  };
  if constexpr (parts == 3) {
    take_pixels(0), take_weights(2), multiply();
    take_weights(1), multiply();
    take_pixels(1), multiply();
    take_weights(0), multiply();
    take_pixels(2), multiply();
    take_pixels(0), multiply();
  } else {
    take_pixels(1), take_weights(0), multiply();
    take_pixels(0), multiply();
    take_weights(1), multiply();
  }
}

// The same for one block of output channels, whose weights are loaded once for up to four tiles of pixels. They come
// from afar then, and are asked for some steps ahead: the machine's own prefetching begins anew in every page. 8 KiB
// are best of 2 to 32 on an Intel server core; without any a 7x7 map of 512 channels takes 1.4 times as long.
constexpr size_t bytes_ahead = 8192;
template <int parts, int m>
SN_INLINE void accumulate_single(Tiles& tiles, const char* pixels, const char* weights) {
  constexpr size_t pixel = parts * row_bytes, step = parts * weight_tile;
  tiles.load<6, lanes>(weights, row_bytes);
  tiles.load<7, lanes>(weights + weight_tile, row_bytes);
  unroll<m>([&](auto a) __attribute__((always_inline)) {
    const char* from = pixels + a * tile_rows * pixel;
    tiles.load<4>(from, pixel);
    tiles.load<5>(from + row_bytes, pixel);
    for (size_t i = a * 64; i < step; i += m * 64) prefetch(reinterpret_cast<const float*>(weights + bytes_ahead + i));
    tiles.multiply<a, 4, 6>();
    tiles.multiply<a, 4, 7>();
    tiles.multiply<a, 5, 6>();
    if constexpr (parts == 3) {
      tiles.load<4>(from + 2 * row_bytes, pixel);
      tiles.multiply<a, 5, 7>();
      tiles.multiply<a, 4, 6>();
    }
  });
  if constexpr (parts == 3) {
    tiles.load<7, lanes>(weights + 2 * weight_tile, row_bytes);
    unroll<m>([&](auto a) __attribute__((always_inline)) {
      tiles.load<4>(pixels + a * tile_rows * pixel, pixel);
      tiles.multiply<a, 4, 7>();
    });
  }
}

// m tiles of pixels from output `at` on, n blocks of output channels.
template <int parts, int m, int n>
void compute(const Band& band, Tiles& tiles, Unfinished& unfinished, const char* weights, int output_block, int at) {
  const float* bias = band.args.epilogue.bias + output_block * lanes;
  unroll<m * n>([&](auto i) __attribute__((always_inline)) { tiles.load<i>(bias + i % n * lanes, 0); });
  const char* pixels = band.scratch.planes + at * band.planes.pixel;
  const int taps = band.args.shape.taps(), steps = band.planes.pairs * taps;
  const int each = steps > 0 ? ceil_div(most_sums * tile_rows, steps) : 0;
  for (int p = 0; p < band.planes.pairs; ++p, pixels += band.planes.pair) {
    for (int tap = 0; tap < taps; ++tap, weights += parts * n * weight_tile) {
      const char* const from = pixels + band.scratch.taps[tap];
      n == 2 ? accumulate_pair<parts, m>(tiles, from, weights) : accumulate_single<parts, m>(tiles, from, weights);
      unfinished.step(each);
    }
  }
  unfinished.finish();
  // By block: a tile of sums after the other.
  constexpr int tile = tile_rows * lanes;
  float* const sums = unfinished.next_sums();
  unroll<m * n>([&](auto i) __attribute__((always_inline)) { tiles.store<i>(sums + (i % n * m + i / n) * tile); });
  unfinished.add<m, n>(band, output_block, at);
  // Beside so few products stores are in the way.
  if (steps < 8) unfinished.finish();
}

template <int parts, int n>
void run_panel(const Band& band, Tiles& tiles, Unfinished& unfinished, const char* weights, int output_block) {
  constexpr int most = most_sums / n;
  const int outputs = (band.rows - 1) * band.planes.width + band.args.shape.x.out;
  for (int at = 0; at < outputs; at += most * tile_rows) {
    const int left = ceil_div(outputs - at, tile_rows);
    unroll<most>([&](auto i) {
      constexpr int m = i + 1;
      if (m == (left < most ? left : most)) compute<parts, m, n>(band, tiles, unfinished, weights, output_block, at);
    });
  }
}

template <int parts>
inline void run_parts(const ConvBfloat16Args& args, int panel_begin, int panel_end, int row_begin, int row_end,
                      void* memory) {
  const ConvBfloat16Shape& s = args.shape;
  const Planes planes(s, args.rows);
  const Scratch scratch(s, args.rows, static_cast<char*>(memory));
  for (int i = 0; i < s.y.kernel; ++i) {
    for (int j = 0; j < s.x.kernel; ++j) {
      const int phase = i % s.y.period() * s.x.phases() + j % s.x.period();
      scratch.taps[i * s.x.kernel + j] =
          phase * planes.phase + (static_cast<size_t>(s.y.offset(i)) * planes.width + s.x.offset(j)) * planes.pixel;
    }
  }
  const int blocks = ceil_div(s.out_channels, lanes);
  const size_t block_bytes = parts * weight_tile * planes.pairs * s.taps();
  Tiles tiles;
  Unfinished unfinished(args, scratch.sums);
  for (int row = row_begin; row < row_end; row += args.rows) {
    const Band band{args, planes, scratch, row, row_end - row < args.rows ? row_end - row : args.rows};
    if (panel_begin < panel_end) fill<parts>(band);
    for (int panel = panel_begin; panel < panel_end; ++panel) {
      const int output_block = s.panel * panel;
      const char* weights = static_cast<const char*>(args.weights) + output_block * block_bytes;
      if (s.panel == 2 && output_block + 1 < blocks) {
        run_panel<parts, 2>(band, tiles, unfinished, weights, output_block);
      } else {
        run_panel<parts, 1>(band, tiles, unfinished, weights, output_block);
      }
    }
  }
  unfinished.finish();
}

inline void run(const ConvBfloat16Args& args, int panel_begin, int panel_end, int row_begin, int row_end,
                void* memory) {
  const auto chosen = args.shape.parts == 3 ? run_parts<3> : run_parts<2>;
  chosen(args, panel_begin, panel_end, row_begin, row_end, memory);
}

}  // namespace conv_bfloat16
}  // namespace softneuro::SN_ISA

namespace softneuro {

extern const ConvBfloat16Kernels SN_ISA_NAME(conv_bfloat16);
const ConvBfloat16Kernels SN_ISA_NAME(conv_bfloat16) = {
    .block = SN_ISA::lanes,
    .scratch_bytes = SN_ISA::conv_bfloat16::scratch_bytes,
    .run = SN_ISA::conv_bfloat16::run,
};

}  // namespace softneuro
