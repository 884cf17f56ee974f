// Winograd convolution over Vf, fused per block of tiles: all positions of a block are encoded, then panel by panel of
// output channels multiplied and decoded, while the block stays in L2. Layouts and contract: winograd.h.
//
//   encoded   [position][input block][tile][lane], positions an odd number of cache lines apart
//   products  [position][tile][lane of panel], the same
#pragma once

#include "kernels/finish_row.h"
#include "kernels/integers.h"
#include "kernels/winograd/passes.h"
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

// ---- passes along one axis; the other axis is a loop ----

alignas(64) constexpr float zeros[lanes] = {};

struct EncodeRows {
  const float* src;  // row 0, column 0 of the tile, which may lie outside the image
  size_t src_row;
  int row_begin, row_end, column_begin, column_end;  // of the tile that are inside
  int rows;
  float* dst;  // [row][position][lane]
};
template <WinogradAxis axis>
[[gnu::flatten]] void encode_rows(const EncodeRows& a) {
  constexpr int positions = axis.positions();
  float* dst = a.dst;
  for (int y = 0; y < a.rows; ++y, dst += positions * lanes) {
    Vf d[positions], v[positions];
    if (y < a.row_begin || y >= a.row_end) {
      unroll<positions>([&](auto x) { store(dst + x * lanes, zero()); });
      continue;
    }
    const float* src = a.src + static_cast<ptrdiff_t>(y * a.src_row);
    unroll<axis.tile * axis.stride>([&](auto x) { prefetch(src + (positions + x) * lanes); });
    if (a.column_begin == 0 && a.column_end == positions) {
      unroll<positions>([&](auto x) { d[x] = load(src + x * lanes); });
    } else {
      unroll<positions>(
          [&](auto x) { d[x] = load(x >= a.column_begin && x < a.column_end ? src + x * lanes : zeros); });
    }
    encode_axis<axis>(d, v);
    unroll<positions>([&](auto x) { store(dst + x * lanes, v[x]); });
  }
}

struct EncodeColumns {
  const float* src;  // of encode_rows
  int columns;
  float* dst;  // position 0
  size_t dst_position;
};
template <WinogradAxis axis>
[[gnu::flatten]] void encode_columns(const EncodeColumns& a) {
  constexpr int positions = axis.positions();
  for (int x = 0; x < a.columns; ++x) {
    Vf d[positions], v[positions];
    const float* src = a.src + x * lanes;
    unroll<positions>([&](auto y) { d[y] = load(src + y * a.columns * lanes); });
    encode_axis<axis>(d, v);
    float* dst = a.dst + x * a.dst_position;
    unroll<positions>([&](auto y) { store(dst + y * a.columns * a.dst_position, v[y]); });
  }
}

struct DecodeColumns {
  const float* src;  // position 0
  size_t src_position;
  int columns;
  float* dst;  // [row][position][lane]
};
template <WinogradAxis axis>
[[gnu::flatten]] void decode_columns(const DecodeColumns& a) {
  constexpr int outputs = axis.tile, positions = axis.positions();
  for (int x = 0; x < a.columns; ++x) {
    Vf m[positions], y[outputs];
    const float* src = a.src + x * a.src_position;
    unroll<positions>([&](auto i) { m[i] = load(src + i * a.columns * a.src_position); });
    decode_axis<axis>(m, y);
    unroll<outputs>([&](auto i) { store(a.dst + (i * a.columns + x) * lanes, y[i]); });
  }
}

struct DecodeRows {
  const float* src;   // of decode_columns
  int rows, columns;  // of the tile that are inside the output
  float* dst;
  size_t dst_row;
  const float* residual;  // null: none
  const float* bias;      // null: zero
  ClampBounds bounds;
};
template <WinogradAxis axis>
[[gnu::flatten]] void decode_rows(const DecodeRows& a) {
  constexpr int outputs = axis.tile, positions = axis.positions();
  const Vf bias = a.bias != nullptr ? load(a.bias) : zero(), lo = set(a.bounds.lo), hi = set(a.bounds.hi);
  for (int row = 0; row < a.rows; ++row) {
    Vf m[positions], y[outputs];
    unroll<positions>([&](auto i) { m[i] = load(a.src + (row * positions + i) * lanes); });
    decode_axis<axis>(m, y);
    unroll<outputs>([&](auto i) { y[i] = y[i] + bias; });
    float* dst = a.dst + row * a.dst_row;
    if (a.residual != nullptr) {
      const float* residual = a.residual + row * a.dst_row;
      unroll<outputs>([&](auto i) {
        if (i < a.columns) y[i] = y[i] + load(residual + i * lanes);
      });
    }
    unroll<outputs>([&](auto i) {
      if (i < a.columns) store(dst + i * lanes, clamp(y[i], lo, hi));
    });
  }
}

constexpr int max_tile = 8, max_kernel = 7, max_stride = 2;
constexpr bool has_transform(int tile, int kernel, int stride) {
  if (kernel == 1) return tile == 1 && stride >= 1 && stride <= max_stride;
  if (tile < 2 || tile > max_tile || kernel < 2 || kernel > max_kernel) return false;
  const int positions = WinogradAxis{tile, kernel, stride}.positions();
  return (stride == 1 && positions <= winograd_max_positions) ||
         (stride == 2 && kernel % 2 == 1 && positions <= winograd_max_axis);
}

// Of one axis.
struct Passes {
  void (*encode_rows)(const EncodeRows&) = nullptr;
  void (*encode_columns)(const EncodeColumns&) = nullptr;
  void (*decode_columns)(const DecodeColumns&) = nullptr;
  void (*decode_rows)(const DecodeRows&) = nullptr;
};
struct PassTable {
  Passes at[max_stride][max_kernel][max_tile];  // less one each
};
constexpr PassTable pass_table() {
  PassTable table;
  unroll<max_stride * max_kernel * max_tile>([&](auto i) {
    constexpr int tile = i % max_tile + 1, kernel = i / max_tile % max_kernel + 1,
                  stride = i / max_tile / max_kernel + 1;
    if constexpr (has_transform(tile, kernel, stride)) {
      constexpr WinogradAxis axis{tile, kernel, stride};
      // With a single phase B' depends on the number of positions only.
      constexpr WinogradAxis encoded = stride > 1 || kernel == 1 ? axis : WinogradAxis{axis.positions() - 1, 2, 1};
      table.at[stride - 1][kernel - 1][tile - 1] = {winograd::encode_rows<encoded>, winograd::encode_columns<encoded>,
                                                    winograd::decode_columns<axis>, winograd::decode_rows<axis>};
    }
  });
  return table;
}
constexpr PassTable passes = pass_table();
SN_INLINE const Passes& along(const WinogradAxis& a) { return passes.at[a.stride - 1][a.taps - 1][a.tile - 1]; }

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
