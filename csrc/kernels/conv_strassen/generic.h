// conv_strassen over Vf: which links make up a tile, a panel and a block of pixels. Contract: conv_strassen.h.
#pragma once

#include "base/lines.h"
#include "kernels/conv_strassen/links.h"

namespace softneuro::SN_ISA {
namespace conv_strassen {

// Tiles of sums in L1: intermediate results and where sums start.
enum TileName { product, sum_u, sum_v, bias_1, bias_2, zeros, tile_names };

struct Scratch {
  float* tile[tile_names];
  float* dense;  // pixels without the stride
  float* s[4];   // s1 ... s4
  size_t dense_block, s_block;
  size_t floats = 0;

  Scratch(const PointwiseShape& shape, const ConvStrassenTiling& tiling, float* memory) {
    const ConvStrassenBlocks blocks(shape, lanes);
    const auto take = [&](size_t count) {
      float* at = memory + floats;
      floats += count;
      return at;
    };
    // Tiles are written all the time: a page between them and what another task reads, which the hardware fetches past.
    constexpr size_t page = 4096 / sizeof(float);
    take(page);
    for (auto& t : tile) t = take(tile_floats);
    const int pixels = round_up(tiling.row_block, 2);
    // An odd number of lines apart, so that blocks do not compete for the same cache sets.
    const auto odd = [](int count) { return static_cast<size_t>(odd_lines(count * lanes)); };
    dense_block = shape.dense() ? 0 : odd(pixels);
    dense = take(dense_block * static_cast<size_t>(blocks.in()));
    s_block = odd(pixels / 2);
    for (auto& sum : s) sum = take(s_block * static_cast<size_t>(blocks.in_half));
    take(page);
  }
};

inline size_t scratch_bytes(const PointwiseShape& shape, const ConvStrassenTiling& tiling) {
  return Scratch(shape, tiling, nullptr).floats * sizeof(float);
}

struct Panel {
  int width, first, second;  // output blocks: of the first half, of the second
  const float* weights;      // the seven products', then those of the rest for the first half, and for the second
  size_t product;            // floats of one
  bool single;               // the block without a partner: plain weights

  const float* of_product(int index) const { return weights + index * product; }
  const float* of_rest(int half) const {
    return weights + 7 * product + static_cast<size_t>(half * width) * lanes * lanes;
  }
};

inline Panel find_panel(const ConvStrassenArgs& args, const ConvStrassenBlocks& blocks, int index) {
  const int panels = ceil_div(blocks.out_half, args.tiling.panel);
  const size_t square = static_cast<size_t>(lanes) * lanes;
  const size_t pair = (7 * blocks.in_half + 2 * blocks.in_rest) * square;
  if (index >= panels) {
    return {1, 2 * blocks.out_half, 2 * blocks.out_half, args.weights + blocks.out_half * pair, 0, true};
  }
  const int first = blocks.out_half * index / panels, width = blocks.out_half * (index + 1) / panels - first;
  return {width, first, blocks.out_half + first, args.weights + first * pair, blocks.in_half * width * square, false};
}

// A block of pixels: pairs of one from either half of them, and perhaps one more.
struct Block {
  const ConvStrassenArgs& args;
  const ConvStrassenBlocks& blocks;
  const Scratch& scratch;
  const float* a;  // the first pixel
  size_t a_block, plane;
  int pixel, pixels, pairs;
};

// s1 = a21 + a22, s2 = s1 - a11, s3 = a11 - a21, s4 = a12 - s2 of some pairs.
inline void encode(const Block& block, int begin, int count) {
  const int half = block.blocks.in_half, down = block.pairs * lanes;
  for (int cb = 0; cb < half; ++cb) {
    const float *left = block.a + cb * block.a_block + begin * lanes, *right = left + half * block.a_block;
    const size_t to = cb * block.scratch.s_block + begin * lanes;
    for (int p = 0; p < count * lanes; p += lanes) {
      const Vf a11 = load(left + p), a21 = load(left + down + p);
      const Vf s1 = a21 + load(right + down + p), s2 = s1 - a11;
      store(block.scratch.s[0] + to + p, s1);
      store(block.scratch.s[1] + to + p, s2);
      store(block.scratch.s[2] + to + p, a11 - a21);
      store(block.scratch.s[3] + to + p, load(right + p) - s2);
    }
  }
}

// A panel for a block of pixels, tile by tile.
class Chain {
 public:
  // Weights from `next` on are wanted after these; at the end there are none.
  Chain(const Block& block, const Panel& panel, const float* next, const float* end)
      : block_(block), panel_(panel), end_(end) {
    link_.activation = &block.args.epilogue.activation;
    link_.next = next;
    link_.ahead_block = block.a_block;
    // Where tiles are few, all of them fetch, and leave lines out.
    const int tiles = ceil_div(block.pairs, max_tile(panel.width));
    if (next != end && tiles > 0 && !panel.single) {
      const int even = ceil_div(panel.width * lanes, tiles);
      link_.fetch = even < 16 ? 16 : even;
    }
    fill_bias(panel.first, bias_1);
    if (!panel.single) fill_bias(panel.second, bias_2);
  }

  // encodes: nothing has read these pixels yet. far: nothing has fetched these weights.
  void run(bool encodes, bool far) {
    if (panel_.single) {
      each_tile(0, block_.pixels, [&](int tile, int at) { alone(tile, at); });
    } else {
      each_tile(0, block_.pairs, [&](int tile, int at) {
        if (encodes) encode(block_, at, tile);
        far_ = far || link_.fetch > 0;
        pairs(tile, at, encodes && at + tile < block_.pairs);
        far = false;
      });
      far_ = false;
      each_tile(2 * block_.pairs, block_.pixels, [&](int tile, int at) { left_over(tile, at); });
    }
    const int channels = block_.args.shape.out_channels, last = ceil_div(channels, lanes) - 1;
    for (int b = 0; b < panel_.width; ++b) {
      for (const int first : {panel_.first, panel_.second}) {
        finish_rest(block_.args.epilogue.activation, at_output(block_.args.dst, first + b, 0), block_.pixels,
                    first + b == last ? channels - last * lanes : lanes);
        if (panel_.single) break;
      }
    }
  }

 private:
  struct Operand {
    const float *a, *w;
    int blocks;
    size_t a_block;
    const float* ahead = nullptr;
  };

  template <class T>
  T* at_output(T* blob, int block, int pixel) const {
    return blob + block * block_.plane + static_cast<size_t>(block_.pixel + pixel) * lanes;
  }

  template <class Body>
  void each_tile(int begin, int end, const Body& body) const {
    const int count = ceil_div(end - begin, max_tile(panel_.width));
    for (int i = 0, left = end - begin; i < count; ++i) {
      const int tile = ceil_div(left, count - i);
      body(tile, end - left);
      left -= tile;
    }
  }

  void fill_bias(int first, TileName name) const {
    const float* bias = block_.args.epilogue.bias;
    for (int b = 0; b < panel_.width; ++b) {
      const Vf x = bias != nullptr ? load(bias + (first + b) * lanes) : zero();
      float* to = tile(name) + b * block_floats(panel_.width);
      for (int p = 0; p < block_floats(panel_.width); p += lanes) store(to + p, x);
    }
  }

  float* tile(TileName name) const { return block_.scratch.tile[name]; }

  void go(int tile, const Operand& first, const Operand& second, const float* add) {
    const auto set_operand = [&](int i, const Operand& o) {
      link_.a[i] = o.a, link_.a_block[i] = o.a_block, link_.w[i] = o.w, link_.blocks[i] = o.blocks;
      link_.ahead[i] = o.ahead;
    };
    set_operand(0, first), set_operand(1, second);
    link_.add = add;
    links.compute[far_][panel_.width][tile](link_);
    link_.middle = nullptr;
    link_.next += static_cast<ptrdiff_t>(first.blocks + second.blocks) * lanes * link_.fetch;
    if (link_.next >= end_) link_.fetch = 0;
  }
  // Stores to an intermediate result.
  void link(int tile, TileName start, const Operand& first, const Operand& second, TileName dst,
            const float* add = nullptr) {
    link_.start = this->tile(start), link_.dst = this->tile(dst), link_.last = false;
    link_.dst_block = block_floats(panel_.width);
    go(tile, first, second, add);
  }
  // Stores to the output.
  void finish(int tile, TileName start, const Operand& first, const Operand& second, TileName add, int block,
              int pixel) {
    const float* residual = block_.args.epilogue.residual.f32();
    link_.start = this->tile(start), link_.dst = at_output(block_.args.dst, block, pixel), link_.last = true;
    link_.residual = residual != nullptr ? at_output(residual, block, pixel) : nullptr;
    link_.dst_block = block_.plane;
    go(tile, first, second, this->tile(add));
  }

  // The four results of a tile of pairs; see conv_strassen.h. b11 and b12 of the rest of the input channels are r1 and
  // r2.
  void pairs(int tile, int at, bool look_ahead) {
    const int half = block_.blocks.in_half, rest = block_.blocks.in_rest;
    const size_t plane = block_.a_block;
    const auto quarter = [&](int down, int right) {
      return block_.a + (down * block_.pairs + at) * lanes + right * half * plane;
    };
    const auto a = [&](const float* from, int weights) {
      return Operand{from, panel_.of_product(weights), half, plane, look_ahead ? from + tile * lanes : nullptr};
    };
    const auto s = [&](int index, int weights) {
      const Scratch& scratch = block_.scratch;
      return Operand{scratch.s[index - 1] + at * lanes, panel_.of_product(weights), half, scratch.s_block};
    };
    const auto r = [&](int down, int weights) {
      return Operand{quarter(down, 2), panel_.of_rest(weights - 1), rest, plane};
    };
    const Operand none{block_.a, panel_.weights, 0, 0};
    const int lower = block_.pairs + at;

    if (rest != 0) link(tile, bias_1, r(0, 1), none, sum_v);
    link_.middle = this->tile(product);  // a11 b11
    finish(tile, zeros, a(quarter(0, 0), 0), a(quarter(0, 1), 1), rest != 0 ? sum_v : bias_1, panel_.first, at);

    Operand s2 = s(2, 2);
    if (look_ahead) s2.ahead = quarter(1, 0) + tile * lanes;
    link_.middle = this->tile(sum_u);
    link(tile, product, s2, s(3, 3), sum_v);
    if (rest != 0) link(tile, sum_u, r(0, 2), none, sum_u);

    link_.middle = this->tile(product);  // s1 t1 and the bias
    finish(tile, bias_2, s(1, 4), s(4, 5), sum_u, panel_.second, at);
    finish(tile, sum_v, r(1, 2), none, product, panel_.second, lower);
    finish(tile, sum_v, a(quarter(1, 1), 6), r(1, 1), bias_1, panel_.first, lower);
  }

  // Pixels without a partner: c1 = a1 b11 + a2 b21, c2 = a1 b11 + a1 t1 + a2 b22.
  void left_over(int tile, int at) {
    const int half = block_.blocks.in_half;
    const size_t plane = block_.a_block;
    const float *a1 = block_.a + at * lanes, *a2 = a1 + half * plane, *a3 = a2 + half * plane;
    const auto a = [&](const float* from, int weights) {
      return Operand{from, panel_.of_product(weights), half, plane};
    };
    const auto r = [&](int weights) { return Operand{a3, panel_.of_rest(weights - 1), block_.blocks.in_rest, plane}; };
    link_.middle = this->tile(product);
    link(tile, zeros, a(a1, 0), r(1), sum_u, this->tile(bias_1));
    finish(tile, sum_u, a(a2, 1), Operand{a2, panel_.weights, 0, 0}, zeros, panel_.first, at);
    link(tile, product, a(a1, 4), r(2), sum_u, this->tile(bias_2));
    finish(tile, sum_u, a(a2, 5), Operand{a2, panel_.weights, 0, 0}, zeros, panel_.second, at);
  }

  // The output block without a partner.
  void alone(int tile, int at) {
    const float* a = block_.a + at * lanes;
    finish(tile, bias_1, Operand{a, panel_.weights, block_.blocks.in(), block_.a_block},
           Operand{a, panel_.weights, 0, 0}, zeros, panel_.first, at);
  }

  const Block& block_;
  const Panel& panel_;
  const float* end_;
  bool far_ = false;
  Link link_{};
};

// Pixels one behind the other, without the stride.
inline void gather(const ConvStrassenArgs& args, const ConvStrassenBlocks& blocks, const Scratch& scratch, int pixel,
                   int pixels) {
  const PointwiseShape& s = args.shape;
  for (int cb = 0; cb < blocks.in(); ++cb) {
    const float* src = args.src + static_cast<size_t>(cb) * s.h * s.w * lanes;
    float* dst = scratch.dense + cb * scratch.dense_block;
    int y = pixel / s.out_w, x = pixel % s.out_w;
    for (int p = 0; p < pixels; ++p) {
      store(dst + p * lanes, load(src + (static_cast<size_t>(y) * s.stride_h * s.w + x * s.stride_w) * lanes));
      if (++x == s.out_w) x = 0, ++y;
    }
  }
}

inline void run(const ConvStrassenArgs& args, int panel_begin, int panel_end, int pixel_begin, int pixel_end,
                void* memory) {
  const PointwiseShape& s = args.shape;
  const ConvStrassenBlocks blocks(s, lanes);
  const Scratch scratch(s, args.tiling, static_cast<float*>(memory));
  for (int i = 0; i < tile_floats; i += lanes) store(scratch.tile[zeros] + i, zero());
  const int count = ceil_div(pixel_end - pixel_begin, args.tiling.row_block);
  for (int i = 0, pixel = pixel_begin; i < count && pixel < pixel_end; ++i) {
    // Blocks of nearly equal size, even ones.
    const int even = round_up(ceil_div(pixel_end - pixel, count - i), 2);
    const int pixels = even < pixel_end - pixel ? even : pixel_end - pixel;
    Block block{.args = args,
                .blocks = blocks,
                .scratch = scratch,
                .a = args.src + static_cast<size_t>(pixel) * lanes,
                .a_block = static_cast<size_t>(s.h) * s.w * lanes,
                .plane = static_cast<size_t>(s.out_h) * s.out_w * lanes,
                .pixel = pixel,
                .pixels = pixels,
                .pairs = pixels / 2};
    if (!s.dense()) {
      gather(args, blocks, scratch, pixel, pixels);
      block.a = scratch.dense, block.a_block = scratch.dense_block;
    }
    for (int index = panel_begin; index < panel_end; ++index) {
      const Panel panel = find_panel(args, blocks, index);
      const float* next = find_panel(args, blocks, index + 1).weights;
      // After the last panel comes the first one again, for the next block of pixels.
      if (index + 1 == panel_end) next = find_panel(args, blocks, panel_begin).weights;
      const bool done = index + 1 == panel_end && pixel + pixels == pixel_end;
      const float* end = done ? next : next + (7 * panel.product + 2 * blocks.in_rest * panel.width * lanes * lanes);
      Chain(block, panel, next, end).run(index == panel_begin, i == 0 && index == panel_begin);
    }
    pixel += pixels;
  }
}

}  // namespace conv_strassen
}  // namespace softneuro::SN_ISA

namespace softneuro {

SN_KERNEL_TABLE(ConvStrassenKernels, conv_strassen) = {
    .block = SN_ISA::lanes,
    .max_panel = SN_ISA::conv_strassen::max_panel,
    .scratch_bytes = SN_ISA::conv_strassen::scratch_bytes,
    .run = SN_ISA::conv_strassen::run,
};

}  // namespace softneuro
