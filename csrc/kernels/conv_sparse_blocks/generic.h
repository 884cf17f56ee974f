#include "kernels/conv_direct/band.h"
#include "kernels/conv_sparse_blocks/conv_sparse_blocks.h"
#include "kernels/finite/all_finite.h"
#include "kernels/integers.h"
#include "kernels/store/tiles.h"
#include "kernels/unroll.h"
#include "simd/hold.h"

namespace softneuro::SN_ISA {
namespace conv_sparse_blocks {

using conv_direct::Buffer;

constexpr int most = registers >= 32 ? 28 : 12;  // outputs of a tile
// Rows of a tile: where maps are narrow, more of them.
constexpr int heights[] = {1, 2, 4};

struct Tile {
  const float* src;
  size_t src_row;  // from an output's row to the next
  const int32_t *offset, *end;
  const float* weights;
  const float* bias;  // null: zero
  float* dst;
  const float* residual;  // null: none
  size_t dst_row, dst_pixel;
  const Activation* activation;
};

template <int rows, int columns>
[[gnu::flatten]] void compute(const Tile& t) {
  Vf sum[rows * columns];
  const Vf start = t.bias != nullptr ? load(t.bias) : zero();
  unroll<rows * columns>([&](auto i) { sum[i] = start; });
  const float* weights = t.weights;
  for (const int32_t* offset = t.offset; offset < t.end; ++offset, weights += lanes) {
    const Vf weight = hold(load(weights));
    const float* const src = t.src + *offset;
    unroll<rows>([&](auto r) {
      const float* const row = hold(src + r * t.src_row);
      unroll<columns>([&](auto p) {
        Vf& y = sum[r * columns + p];
        y = fma(set(row[p * lanes]), weight, y);
      });
    });
  }
  finish_tile<rows, columns>(sum, true, t.activation, t.dst, t.residual, t.dst_row, t.dst_pixel);
}

using Compute = void (*)(const Tile&);
struct Tiles {
  Compute of[3][most + 1] = {};
};
constexpr Tiles all_tiles() {
  Tiles tiles;
  unroll<3>(
      [&](auto h) { unroll<most / heights[h]>([&](auto p) { tiles.of[h][p + 1] = compute<heights[h], p + 1>; }); });
  return tiles;
}
constexpr Tiles tiles = all_tiles();

// Output rows of `width` pixels in tiles of nearly equal width: body(h, columns, row, column) of each, which has
// heights[h] rows.
template <class Body>
SN_INLINE void for_tiles(int rows, int width, const Body& body) {
  for (int row = 0, h = 0; row < rows; row += heights[h]) {
    h = 0;
    while (h < 2 && heights[h + 1] <= rows - row && heights[h + 1] * width <= most) ++h;
    const int count = ceil_div(width, most / heights[h]);
    for (int i = 0, column = 0; i < count; ++i) {
      const int columns = width / count + (i < width % count ? 1 : 0);
      body(h, columns, row, column);
      column += columns;
    }
  }
}

// How src, or a copy of it, is read.
struct Source {
  const float* first;          // of the group, at the band's first output
  size_t block, row, out_row;  // from one to the next: of input blocks, of taps, of outputs
};

// Where an output is in dst.
struct Target {
  size_t block, pixel;
  Target(const ConvSparseBlocks& p)
      : block(p.dst_block != 0 ? p.dst_block : static_cast<size_t>(p.shape.out_h) * p.shape.out_w * lanes),
        pixel(p.dst_pixel != 0 ? p.dst_pixel : lanes) {}
  size_t at(int b, int i) const { return b * block + i * pixel; }
};

// Outputs that have a value that is not finite where all weights of their block are zero become NaN.
inline void spread(const ConvSparseBlocks& p, const Buffer& buffer, const Source& source, int block_begin,
                   int block_end, int rows, int width, int first_pixel, const Target& target) {
  const ConvDirectShape& s = p.shape;
  const auto count = [&](const float* from, auto each) {
    int found = 0;
    each([&](size_t offset) { found += from[offset] * 0 == 0 ? 0 : 1; });
    return found;
  };
  for (int i = 0; i < rows * width; ++i) {
    const float* const from = source.first + i / width * source.out_row + i % width * lanes;
    const int all = count(from, [&](auto see) {
      for (int cb = 0; cb < ceil_div(s.in_channels, lanes); ++cb) {
        for (int tap = 0; tap < s.kernel_h * s.kernel_w; ++tap) {
          const size_t at = cb * source.block + tap / s.kernel_w * source.row + buffer.tap(s, tap % s.kernel_w);
          for (int lane = 0; lane < lanes; ++lane) see(at + lane);
        }
      }
    });
    for (int block = block_begin; all > 0 && block < block_end; ++block) {
      const int met = count(from, [&](auto see) {
        for (int32_t at = p.starts[block]; at < p.starts[block + 1]; ++at) see(p.offsets[at]);
      });
      const int left = s.groups * s.out_channels - block * lanes;
      float* const to = p.dst + target.at(block, first_pixel + i);
      if (met < all) store_n(to, set(__builtin_nanf("")), left < lanes ? left : lanes);
    }
  }
}

inline void finish(const Activation& activation, const Target& target, float* dst, int pixels, int channels) {
  if (target.pixel == lanes) return finish_rest(activation, dst, pixels, channels);
  if (finishes_in_registers(activation.kind)) return;
  for (int i = 0; i < pixels; ++i) activate_row(dst + i * target.pixel, dst + i * target.pixel, lanes, activation);
}

// Rows of as many values as there are input channels, as the first pixels of a blocked image of one row.
inline void block_rows(const float* src, ptrdiff_t stride, int rows, int channels, int pixels, float* dst) {
  for (int first = 0; first < channels; first += lanes, dst += pixels * lanes) {
    const int count = channels - first < lanes ? channels - first : lanes;
    for (int i = 0; i < rows; ++i) {
      const float* const from = src + i * stride + first;
      store(dst + i * lanes, count == lanes ? load(from) : load_n(from, count));
    }
  }
}

inline size_t scratch_bytes(const ConvDirectShape& shape, int band) {
  if (shape.pointwise()) return 0;
  const Buffer buffer(shape, band, true);
  return ceil_div(shape.in_channels, lanes) * buffer.block * sizeof(float);
}

inline Source source_of(const ConvDirectShape& s, const Buffer& buffer) {
  if (s.pointwise()) return {nullptr, static_cast<size_t>(s.h) * s.w * lanes, 0, 0};
  return {nullptr, buffer.block, s.dilation_h * buffer.row, s.stride_h * buffer.row};
}

inline void place(const ConvDirectShape& s, int band, const int32_t* taps, int count, int32_t* offsets) {
  const Buffer buffer(s, band, true);
  const Source source = source_of(s, buffer);
  const int area = s.kernel_h * s.kernel_w;
  for (int i = 0; i < count; ++i) {
    const int tap = taps[i] / lanes % area;
    offsets[i] = static_cast<int32_t>(taps[i] / lanes / area * source.block + tap / s.kernel_w * source.row +
                                      buffer.tap(s, tap % s.kernel_w) + taps[i] % lanes);
  }
}

// Rows from y0 on, of which those outside the image are zeros. Whether all are finite.
inline bool copy_rows(const ConvDirectShape& s, const Buffer& buffer, const float* src, int y0, int rows, float* dst) {
  bool finite = true;
  const size_t vectors = buffer.row / lanes;
  for (int cb = 0; cb < ceil_div(s.in_channels, lanes); ++cb) {
    const float* const plane = src + static_cast<size_t>(cb) * s.h * s.w * lanes;
    for (int i = 0; i < rows; ++i) {
      const int y = y0 + i;
      if (!conv_direct::tap_reaches(i, s.kernel_h, s.dilation_h, s.stride_h)) continue;
      float* const to = dst + cb * buffer.block + i * buffer.row;
      if (y < 0 || y >= s.h) {
        for (size_t j = 0; j < vectors; ++j) store(to + j * lanes, zero());
        continue;
      }
      const float* const row = plane + static_cast<size_t>(y) * s.w * lanes;
      conv_direct::copy_row(s, buffer, row, to);
      finite = all_finite(row, static_cast<size_t>(s.w) * lanes) && finite;
    }
  }
  return finite;
}

inline bool finite_pixels(const ConvDirectShape& s, const float* src, int pixels) {
  bool finite = true;
  for (int cb = 0; cb < ceil_div(s.in_channels, lanes); ++cb) {
    finite =
        all_finite(src + static_cast<size_t>(cb) * s.h * s.w * lanes, static_cast<size_t>(pixels) * lanes) && finite;
  }
  return finite;
}

// Blocks of outputs whose weights stay in L1 while tile after tile meets all of them: at least one.
inline int chunk_end(const ConvSparseBlocks& p, int begin, int end) {
  constexpr int vectors = 16384 / (lanes * static_cast<int>(sizeof(float)));
  int past = begin + 1;
  while (past < end && p.starts[past + 1] - p.starts[begin] <= vectors) ++past;
  return past;
}

inline void compute_chunk(const ConvSparseBlocks& p, const Source& source, const Target& target, int begin, int end,
                          int pixel, int rows, int width) {
  const float* const residual = p.epilogue.residual.f32();
  Tile t;
  t.src_row = source.out_row;
  t.dst_pixel = target.pixel;
  t.dst_row = width * target.pixel;
  t.activation = &p.epilogue.activation;
  for_tiles(rows, width, [&](int h, int columns, int row, int column) {
    t.src = source.first + row * source.out_row + column * lanes;
    for (int block = begin; block < end; ++block) {
      const size_t at = target.at(block, pixel + row * width + column);
      t.offset = p.offsets + p.starts[block];
      t.end = p.offsets + p.starts[block + 1];
      t.weights = p.weights + static_cast<size_t>(p.starts[block]) * lanes;
      t.bias = p.epilogue.bias == nullptr ? nullptr : p.epilogue.bias + block * lanes;
      t.dst = p.dst + at;
      t.residual = residual == nullptr ? nullptr : residual + at;
      tiles.of[h][columns](t);
    }
  });
  for (int block = begin; block < end; ++block) {
    const int left = p.shape.groups * p.shape.out_channels - block * lanes;
    finish(p.epilogue.activation, target, p.dst + target.at(block, pixel), rows * width, left < lanes ? left : lanes);
  }
}

inline void run(const ConvSparseBlocks& p, int block_begin, int block_end, int row_begin, int row_end, void* scratch) {
  const ConvDirectShape& s = p.shape;
  const bool pointwise = s.pointwise();
  const Buffer buffer(s, p.band, true);
  Source source = source_of(s, buffer);
  const int per_group = ceil_div(s.out_channels, lanes), in_blocks = ceil_div(s.in_channels, lanes);
  const int width = pointwise ? 1 : s.out_w;
  const size_t in_plane = static_cast<size_t>(s.h) * s.w * lanes;
  const Target target(p);
  for (int row = row_begin; row < row_end; row += p.band) {
    const int rows = row_end - row < p.band ? row_end - row : p.band, pixel = row * width;
    const int tall = pointwise ? 1 : rows, wide = pointwise ? rows : width;
    for (int begin = block_begin; begin < block_end;) {
      const int group = begin / per_group, next = (group + 1) * per_group, end = next < block_end ? next : block_end;
      const float* const src = p.src + group * in_blocks * in_plane;
      bool finite;
      if (pointwise) {
        source.first = src + static_cast<size_t>(row) * lanes;
        finite = finite_pixels(s, source.first, rows);
      } else {
        const int need = (rows - 1) * s.stride_h + (s.kernel_h - 1) * s.dilation_h + 1;
        auto* const copy = static_cast<float*>(scratch);
        finite = copy_rows(s, buffer, src, row * s.stride_h - s.pad_top, need, copy);
        source.first = copy;
      }
      for (int block = begin, past; block < end; block = past) {
        past = chunk_end(p, block, end);
        compute_chunk(p, source, target, block, past, pixel, tall, wide);
      }
      if (!finite) spread(p, buffer, source, begin, end, tall, wide, pixel, target);
      begin = end;
    }
  }
}

}  // namespace conv_sparse_blocks
}  // namespace softneuro::SN_ISA

namespace softneuro {

SN_KERNEL_TABLE(ConvSparseBlocksKernels, conv_sparse_blocks) = {
    .block = SN_ISA::lanes,
    .place = SN_ISA::conv_sparse_blocks::place,
    .block_rows = SN_ISA::conv_sparse_blocks::block_rows,
    .scratch_bytes = SN_ISA::conv_sparse_blocks::scratch_bytes,
    .run = SN_ISA::conv_sparse_blocks::run,
};

}  // namespace softneuro
