// Winograd convolution over Vf, fused per block of tiles: all positions of a block are encoded, then panel by panel of
// output channels multiplied and decoded, while the block stays in L2. Layouts and contract: winograd.h.
//
//   encoded   [position][input block][tile][lane], positions an odd number of cache lines apart
//   products  [position][tile][lane of panel], the same
#pragma once

#include "kernels/finish_row.h"
#include "kernels/integers.h"
#include "kernels/winograd/tile.h"
#include "kernels/winograd/weights.h"
#include "kernels/winograd/winograd.h"

namespace softneuro::SN_ISA {
namespace winograd {

constexpr int max_group = registers >= 32 ? 14 : 6;
// Floats from the weights in use to those being fetched.
constexpr int weights_ahead = 2048;

// ---- products ----

struct Product {
  const float* src;  // [block][tile][lane] from the group's first tile on
  size_t src_block;
  const float* weights;  // [channel][lane of panel]
  int blocks;
  float* dst;
};

template <int tiles, int panel, bool fetch>
SN_INLINE void accumulate(Vf (&sum)[tiles * panel], const float* src, const float* weights) {
  Vf w[panel];
  unroll<panel>([&](auto b) {
    w[b] = load(weights + b * lanes);
    if constexpr (fetch) prefetch(weights + b * lanes + weights_ahead);
  });
  unroll<tiles>([&](auto t) {
    const Vf x = set(src[t * lanes]);
    unroll<panel>([&](auto b) { sum[t * panel + b] = fma(x, w[b], sum[t * panel + b]); });
  });
}

template <int tiles, int panel, bool fetch>
[[gnu::flatten]] void multiply(const Product& p) {
  Vf sum[tiles * panel];
  unroll<tiles * panel>([&](auto i) { sum[i] = zero(); });
  const float *src = p.src, *weights = p.weights;
  for (int cb = 0; cb < p.blocks; ++cb, src += p.src_block) {
    for (int lane = 0; lane < lanes; lane += 4) {
      unroll<4>([&](auto j) { accumulate<tiles, panel, fetch>(sum, src + lane + j, weights + j * panel * lanes); });
      weights += 4 * panel * lanes;
    }
  }
  unroll<tiles * panel>([&](auto i) { store(p.dst + i * lanes, sum[i]); });
}

using Multiply = void (*)(const Product&);
struct ProductTable {
  Multiply multiply[winograd_panel + 1][max_group + 1][2] = {};
};
constexpr ProductTable product_table() {
  ProductTable table;
  unroll<winograd_panel>([&](auto b) {
    unroll<max_group>([&](auto t) {
      table.multiply[b + 1][t + 1][0] = winograd::multiply<t + 1, b + 1, false>;
      table.multiply[b + 1][t + 1][1] = winograd::multiply<t + 1, b + 1, true>;
    });
  });
  return table;
}
constexpr ProductTable products = product_table();

// ---- a block of tiles ----

// Where things are; strides in floats.
struct Plan {
  int in_blocks, out_blocks;  // of a group
  size_t src_plane, dst_plane;
  size_t encoded_position, product_position;
  float *encoded, *product, *tile;

  Plan(const WinogradShape& s, int block, void* scratch = nullptr) {
    in_blocks = ceil_div(s.in_channels, lanes);
    out_blocks = ceil_div(s.out_channels, lanes);
    src_plane = static_cast<size_t>(s.h) * s.w * lanes;
    dst_plane = static_cast<size_t>(s.out_h) * s.out_w * lanes;
    encoded_position = odd_lines(static_cast<size_t>(in_blocks) * block * lanes);
    product_position = odd_lines(static_cast<size_t>(winograd_panel) * block * lanes);
    encoded = static_cast<float*>(scratch);
    product = encoded + s.positions() * encoded_position;
    tile = product + s.positions() * product_position;
  }
  static size_t odd_lines(size_t floats) { return ((floats + 15) / 16 | 1) * 16; }
};

struct Tile {
  int image, y, x;  // of the first output
};
SN_INLINE Tile find_tile(const WinogradShape& s, int index) {
  const int in_row = index % s.tiles_w(), row = index / s.tiles_w();
  return {row / s.tiles_h(), row % s.tiles_h() * s.tile_h, in_row * s.tile_w};
}

// Channel block outermost, so that neighbouring tiles find each other's columns in L1 and rows are read as streams.
inline void encode_block(const WinogradArgs& args, const Plan& plan, int group, int first, int count) {
  const WinogradShape& s = args.shape;
  const int rows = s.positions_h(), columns = s.positions_w();
  EncodeRows a;
  a.src_row = static_cast<size_t>(s.w) * lanes;
  a.rows = rows;
  a.dst = plan.tile;
  EncodeColumns b{plan.tile, columns, plan.encoded, plan.encoded_position};
  for (int cb = 0; cb < plan.in_blocks; ++cb) {
    for (int t = 0; t < count; ++t, b.dst += lanes) {
      const Tile tile = find_tile(s, first + t);
      const int y = tile.y * s.stride_h - s.pad_top, x = tile.x * s.stride_w - s.pad_left;
      a.row_begin = y < 0 ? -y : 0;
      a.row_end = s.h - y < rows ? s.h - y : rows;
      a.column_begin = x < 0 ? -x : 0;
      a.column_end = s.w - x < columns ? s.w - x : columns;
      a.src = args.src + tile.image * args.src_image + (group * plan.in_blocks + cb) * plan.src_plane +
              (static_cast<ptrdiff_t>(y) * s.w + x) * lanes;
      along(s.along_rows()).encode_rows(a);
      along(s.across_rows()).encode_columns(b);
    }
  }
}

inline void multiply_block(const Plan& plan, int positions, const float* weights, int panel, int count) {
  const int groups = ceil_div(count, max_group), length = count / groups, longer = count % groups;
  Product p;
  p.blocks = plan.in_blocks;
  p.src_block = static_cast<size_t>(count) * lanes;
  for (int position = 0; position < positions; ++position) {
    p.src = plan.encoded + position * plan.encoded_position;
    p.dst = plan.product + position * plan.product_position;
    p.weights = weights + static_cast<size_t>(position) * plan.in_blocks * lanes * panel * lanes;
    for (int i = 0; i < groups; ++i) {
      const int tiles = length + (i < longer ? 1 : 0);
      products.multiply[panel][tiles][i == 0](p);
      p.src += tiles * lanes;
      p.dst += tiles * panel * lanes;
    }
  }
}

inline void decode_block(const WinogradArgs& args, const Plan& plan, int out_block, int panel, int tail, int first,
                         int count) {
  const WinogradShape& s = args.shape;
  const Epilogue& epilogue = args.epilogue;
  const int columns = s.positions_w();
  const bool second_pass = !is_clamp(epilogue.activation.kind);
  DecodeRows b;
  b.src = plan.tile;
  b.dst_row = static_cast<size_t>(s.out_w) * lanes;
  b.bounds = clamp_bounds(epilogue.activation);
  for (int t = 0; t < count; ++t) {
    const Tile tile = find_tile(s, first + t);
    b.rows = s.out_h - tile.y < s.tile_h ? s.out_h - tile.y : s.tile_h;
    b.columns = s.out_w - tile.x < s.tile_w ? s.out_w - tile.x : s.tile_w;
    for (int i = 0; i < panel; ++i) {
      const int channels = i + 1 == panel ? tail : lanes;
      const size_t at = (out_block + i) * plan.dst_plane + (static_cast<size_t>(tile.y) * s.out_w + tile.x) * lanes;
      b.dst = args.dst + tile.image * args.dst_image + at;
      b.residual = epilogue.residual != nullptr ? epilogue.residual + tile.image * args.residual_image + at : nullptr;
      b.bias = epilogue.bias != nullptr ? epilogue.bias + (out_block + i) * lanes : nullptr;
      const DecodeColumns a{plan.product + (t * panel + i) * lanes, plan.product_position, columns, plan.tile};
      along(s.across_rows()).decode_columns(a);
      along(s.along_rows()).decode_rows(b);
      if (!second_pass && channels == lanes) continue;
      for (int y = 0; y < b.rows; ++y) finish_row(epilogue.activation, b.dst + y * b.dst_row, b.columns, channels);
    }
  }
}

inline size_t scratch_bytes(const WinogradShape& s, int block) {
  const Plan plan(s, block);
  const size_t tile = static_cast<size_t>(s.positions()) * lanes;
  return round_up(static_cast<int>(tile), 16) * sizeof(float) +
         s.positions() * (plan.encoded_position + plan.product_position) * sizeof(float);
}

inline void run(const WinogradArgs& args, int panel_begin, int panel_end, int tile_begin, int tile_end, void* scratch) {
  const WinogradShape& s = args.shape;
  const Plan plan(s, args.block, scratch);
  const int per_group = ceil_div(plan.out_blocks, winograd_panel);
  const size_t per_block = static_cast<size_t>(plan.in_blocks) * lanes * lanes * s.positions();  // weights, floats
  const int total = tile_end - tile_begin, blocks = ceil_div(total, args.block);
  for (int i = 0, first = tile_begin; i < blocks; ++i) {
    const int count = total / blocks + (i < total % blocks ? 1 : 0);
    int group = -1;
    for (int index = panel_begin; index < panel_end; ++index) {
      const int first_block = index % per_group * winograd_panel;
      if (index / per_group != group) encode_block(args, plan, group = index / per_group, first, count);
      const int left = plan.out_blocks - first_block, panel = left < winograd_panel ? left : winograd_panel;
      const int out_block = group * plan.out_blocks + first_block;
      const int tail = left > panel ? lanes : s.out_channels - (plan.out_blocks - 1) * lanes;
      multiply_block(plan, s.positions(), args.weights + out_block * per_block, panel, count);
      decode_block(args, plan, out_block, panel, tail, first, count);
    }
    first += count;
  }
}

}  // namespace winograd
}  // namespace softneuro::SN_ISA

namespace softneuro {

extern const WinogradKernels SN_ISA_NAME(winograd);
const WinogradKernels SN_ISA_NAME(winograd) = {
    .block = SN_ISA::lanes,
    .max_group = SN_ISA::winograd::max_group,
    .has_transform = SN_ISA::winograd::has_transform,
    .scratch_bytes = SN_ISA::winograd::scratch_bytes,
    .transform_weights = SN_ISA::winograd::transform_weights,
    .run = SN_ISA::winograd::run,
};

}  // namespace softneuro
