// conv_depthwise over Vf: a tile of output pixels of one or two rows in registers; every source pixel is loaded once
// and used by all pixels of the tile that it reaches. Layouts and contract: conv_depthwise.h.
#pragma once

#include "kernels/conv_depthwise/conv_depthwise.h"
#include "kernels/integers.h"
#include "kernels/store/pixels.h"
#include "kernels/unroll.h"

namespace softneuro::SN_ISA {
namespace conv_depthwise {

struct Tile {
  const float* src;      // row of tap r = 0 for the first output row, column of tap s = 0 for pixel 0; may lie outside
  const float* weights;  // [r][s][lane]
  const float* bias;     // null: zero
  float* dst;
  const float* residual;  // null: none
  ptrdiff_t ahead;        // floats from dst to what is asked for
  size_t src_row, dst_row;
  int first_row, last_row;        // source rows [first_row, last_row) from src on are in the image
  int first_column, last_column;  // columns likewise; looked at by border tiles only
  const Activation* activation;
};

// One source row: weights row r for output row 0, r - stride for output row 1.
template <int kernel, int stride, int tile, bool border, bool row0, bool row1>
SN_INLINE void accumulate_row(const Tile& t, Vf* sum, const float* src, const float* weights) {
  Vf w0[kernel], w1[kernel];
  unroll<kernel>([&](auto s) {
    if constexpr (row0) w0[s] = load(weights + s * lanes);
    if constexpr (row1) w1[s] = load(weights + (s - stride * kernel) * lanes);
  });
  unroll<(tile - 1) * stride + kernel>([&](auto column) {
    if constexpr (border && (column < kernel - 1 || column > (tile - 1) * stride)) {
      if (column < t.first_column || column >= t.last_column) return;
    }
    const Vf x = load(src + column * lanes);
    unroll<kernel>([&](auto s) {
      constexpr int p = (column - s) / stride;
      if constexpr (column >= s && (column - s) % stride == 0 && p < tile) {
        if constexpr (row0) sum[p] = fma(x, w0[s], sum[p]);
        if constexpr (row1) sum[tile + p] = fma(x, w1[s], sum[tile + p]);
      }
    });
  });
}

template <int kernel, int stride, int tile, int rows, bool border>
[[gnu::flatten]] void compute_tile(const Tile& t) {
  const Vf start = t.bias != nullptr ? load(t.bias) : zero();
  Vf sum[rows * tile];
  unroll<rows * tile>([&](auto i) { sum[i] = start; });
  const auto row = [&](int r) { return t.src + r * static_cast<ptrdiff_t>(t.src_row); };
  const auto weights = [&](int r) { return t.weights + r * kernel * lanes; };
  if constexpr (rows == 1) {
    for (int r = t.first_row; r < t.last_row; ++r) {
      accumulate_row<kernel, stride, tile, border, true, false>(t, sum, row(r), weights(r));
    }
  } else {
    // Source rows that only the first output row has, that both have, that only the second one has; `whole` where all
    // are in the image.
    const auto sweep = [&](auto whole) {
      const int first = whole ? 0 : t.first_row, last = whole ? kernel + stride : t.last_row;
      for (int r = first; r < (whole || stride < last ? stride : last); ++r) {
        accumulate_row<kernel, stride, tile, border, true, false>(t, sum, row(r), weights(r));
      }
      for (int r = whole || first < stride ? stride : first; r < (whole || kernel < last ? kernel : last); ++r) {
        accumulate_row<kernel, stride, tile, border, true, true>(t, sum, row(r), weights(r));
      }
      for (int r = whole || first < kernel ? kernel : first; r < last; ++r) {
        accumulate_row<kernel, stride, tile, border, false, true>(t, sum, row(r), weights(r));
      }
    };
    if (t.first_row == 0 && t.last_row == kernel + stride) {
      sweep(Index<1>{});
    } else {
      sweep(Index<0>{});
    }
  }
  finish_tile<rows, tile>(sum, true, t.activation, t.dst, t.residual, t.dst_row, lanes);
}

// Rows are cut greedily: 14 pixels while they last (maps of 7, 14, 28, ... are common), then the smaller ones.
constexpr int tile_sizes[] = {14, 7, 4, 2, 1};
constexpr int size_count = 5;
// With 16 registers 7 pixels are enough, and of two rows always: 14 leave no room for the weights of both (AMD Zen 4,
// 3x3: a fifth slower).
constexpr int largest(int rows) { return registers >= 32 && rows == 1 ? 0 : 1; }

using ComputeTile = void (*)(const Tile&);

// One output row, or two, of one channel block, pixels left to right; moves t's pointers on. In place, as a copy would
// read in one go what was just written in parts, which waits for all stores before it.
template <int kernel, int stride, int rows>
void compute_rows(Tile& t, int out_w) {
  const int first_column = t.first_column, last_column = t.last_column;
  int x = 0;
  unroll<size_count>([&](auto index) {
    constexpr int tile = tile_sizes[index];
    if constexpr (index >= largest(rows)) {
      for (; x + tile <= out_w; x += tile) {
        for (int row = 0; row < rows; ++row) {
          for (int p = 0; p < tile; p += 16 / lanes) prefetch_to_write(t.dst + row * t.dst_row + p * lanes + t.ahead);
        }
        const bool inside = t.first_column <= 0 && t.last_column >= (tile - 1) * stride + kernel;
        if (tile >= 7 && inside) {
          compute_tile < kernel, stride, tile, rows, tile<7>(t);
        } else {
          compute_tile<kernel, stride, tile, rows, true>(t);
        }
        t.src += tile * stride * lanes;
        t.first_column -= tile * stride;
        t.last_column -= tile * stride;
        t.dst += tile * lanes;
        if (t.residual != nullptr) t.residual += tile * lanes;
      }
    }
  });
  t.first_column = first_column, t.last_column = last_column;
}

// Any kernel, stride and dilation.
inline void compute_row_generic(const ConvDepthwiseArgs& a, const Tile& t, int out_w) {
  for (int x = 0; x < out_w; ++x) {
    Vf sums[1] = {};
    Vf& sum = sums[0];
    sum = t.bias != nullptr ? load(t.bias) : zero();
    for (int r = t.first_row; r < t.last_row; ++r) {
      for (int s = 0; s < a.kernel_w; ++s) {
        const int column = x * a.stride_w + s * a.dilation_w;
        if (column < t.first_column || column >= t.last_column) continue;
        const Vf pixel = load(t.src + r * static_cast<ptrdiff_t>(t.src_row) + column * lanes);
        sum = fma(pixel, load(t.weights + (r * a.kernel_w + s) * lanes), sum);
      }
    }
    if (t.residual != nullptr) sum = sum + Reading<float>().value(t.residual + x * lanes);
    finish_sums(sums, *t.activation);
    Writing<float>().put(t.dst + x * lanes, sum);
  }
}

using ComputeRows = void (*)(Tile&, int);
inline ComputeRows find_rows(int kernel, int stride, int rows) {
  if (stride == 1) {
    if (kernel == 3) return rows == 1 ? compute_rows<3, 1, 1> : compute_rows<3, 1, 2>;
    if (kernel == 5) return rows == 1 ? compute_rows<5, 1, 1> : compute_rows<5, 1, 2>;
    if (kernel == 7) return rows == 1 ? compute_rows<7, 1, 1> : compute_rows<7, 1, 2>;
  } else if (stride == 2) {
    if (kernel == 3) return rows == 1 ? compute_rows<3, 2, 1> : compute_rows<3, 2, 2>;
    if (kernel == 5) return rows == 1 ? compute_rows<5, 2, 1> : compute_rows<5, 2, 2>;
    if (kernel == 7) return rows == 1 ? compute_rows<7, 2, 1> : compute_rows<7, 2, 2>;
  }
  return nullptr;
}

// Floats from the pixels being written to those asked for: with so little arithmetic, waiting for a line that another
// core wrote last takes half as long again as the rest.
constexpr ptrdiff_t written_ahead = 1024;

inline void run(const ConvDepthwiseArgs& a, int block_begin, int block_end, int row_begin, int row_end) {
  // The unrolled tiles take at least one column of each pixel's window to be in the image.
  const int overhang = (a.out_w - 1) * a.stride_w + a.kernel_w - a.pad_left - a.w;
  const bool plain = a.kernel_h == a.kernel_w && a.stride_h == a.stride_w && a.dilation_h == 1 && a.dilation_w == 1 &&
                     a.pad_left < a.kernel_w && overhang < a.kernel_w;
  const ComputeRows one = plain ? find_rows(a.kernel_w, a.stride_w, 1) : nullptr;
  const ComputeRows two = plain ? find_rows(a.kernel_w, a.stride_w, 2) : nullptr;
  Tile t;
  t.src_row = static_cast<size_t>(a.w) * lanes * a.dilation_h;
  t.dst_row = static_cast<size_t>(a.out_w) * lanes;
  t.first_column = a.pad_left;
  t.last_column = a.pad_left + a.w;
  const size_t src_plane = a.src_plane != 0 ? a.src_plane : static_cast<size_t>(a.h) * a.w * lanes;
  const size_t dst_plane = a.dst_plane != 0 ? a.dst_plane : a.out_h * t.dst_row;
  const bool floats = a.epilogue.is_float32();
  PixelStore store(a.epilogue, a.dst, dst_plane, a.sums, 0);
  t.activation = store.activation();
  for (int block = block_begin; block < block_end; ++block) {
    const float* plane = a.src + block * src_plane;
    const int channels = a.channels - block * lanes < lanes ? a.channels - block * lanes : lanes;
    t.weights = a.weights + static_cast<size_t>(block) * a.kernel_h * a.kernel_w * lanes;
    t.bias = store.bias(block);
    for (int row = row_begin, rows; row < row_end; row += rows) {
      rows = two != nullptr && row + 2 <= row_end ? 2 : 1;
      const int y = row * a.stride_h - a.pad_top;
      t.src = plane + (static_cast<ptrdiff_t>(y - a.src_row) * a.w - a.pad_left) * lanes;
      t.first_row = y >= 0 ? 0 : ceil_div(-y, a.dilation_h);
      t.last_row = y >= a.h ? 0 : ceil_div(a.h - y, a.dilation_h);
      const int reach = a.kernel_h + (rows - 1) * a.stride_h;
      if (t.last_row > reach) t.last_row = reach;
      const int pixel = (row - a.dst_row) * a.out_w;
      store.begin(block, pixel);
      t.dst = store.dst(block, pixel);
      t.residual = store.residual(block, pixel);
      // Past these rows come those of the next block; the lines between are another task's.
      const auto left = static_cast<ptrdiff_t>((row_end - row) * t.dst_row);
      const auto between = static_cast<ptrdiff_t>(dst_plane - (row_end - row_begin) * t.dst_row);
      t.ahead = left > written_ahead ? written_ahead : block + 1 < block_end ? written_ahead + between : 0;
      if (!floats) t.ahead = 0;
      if (rows == 2) {
        two(t, a.out_w);
      } else if (one != nullptr) {
        one(t, a.out_w);
      } else {
        compute_row_generic(a, t, a.out_w);
      }
      store.finish(block, pixel, rows * a.out_w, channels);
    }
  }
}

}  // namespace conv_depthwise
}  // namespace softneuro::SN_ISA

namespace softneuro {

SN_KERNEL_TABLE(ConvDepthwiseKernels, conv_depthwise) = {
    .block = SN_ISA::lanes,
    .run = SN_ISA::conv_depthwise::run,
};

}  // namespace softneuro
