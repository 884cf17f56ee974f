// Windows of the input as conv_sparse reads them: padding in place, columns sorted by phase.
#pragma once

#include "kernels/conv_sparse/conv_sparse.h"
#include "kernels/integers.h"
#include "simd/some.h"

namespace softneuro::SN_ISA {
namespace conv_sparse {

// Zero or, where a value is not finite, NaN: the sum of all of them times zero.
struct Finite {
  Vf sum = zero();
  float rest = 0;
  SN_INLINE void see(Vf x) { sum = fma(x, zero(), sum); }
  SN_INLINE void see(float x) { rest += x * 0; }
  SN_INLINE bool all() const { return !any(is_nan(sum)) && rest == 0; }
};

inline void copy_row(const ConvSparsePlane& p, const float* src, float* dst, Finite& finite) {
  for (int phase = 0; phase < p.phases; ++phase, dst += p.columns) {
    const int x = phase + p.left;  // of column 0
    int begin = x >= 0 ? 0 : ceil_div(-x, p.phases), end = x >= p.w ? 0 : ceil_div(p.w - x, p.phases);
    if (end > p.columns) end = p.columns;
    if (begin > end) begin = end;
    int q = 0;
    for (; q < begin; ++q) dst[q] = 0.0f;
    if (p.phases == 1) {
      for (; q < end; q += lanes) {
        const int n = end - q < lanes ? end - q : lanes;
        const Vf values = n == lanes ? load(src + x + q) : load_n(src + x + q, n);
        finite.see(values);
        n == lanes ? store(dst + q, values) : store_n(dst + q, values, n);
      }
      q = end;
    }
    for (; q < end; ++q) {
      dst[q] = src[x + q * p.phases];
      finite.see(dst[q]);
    }
    for (; q < p.columns; ++q) dst[q] = 0.0f;
  }
}

inline bool copy_plane(const ConvSparsePlane& p) {
  Finite finite;
  const ptrdiff_t width = static_cast<ptrdiff_t>(p.phases) * p.columns;
  for (int i = 0; i < p.rows; ++i) {
    float* row = p.dst + i * width;
    const int y = p.top + i;
    if (y >= 0 && y < p.h) {
      copy_row(p, p.src + static_cast<ptrdiff_t>(y) * p.w, row, finite);
    } else {
      for (ptrdiff_t x = 0; x < width; ++x) row[x] = 0.0f;
    }
  }
  return finite.all();
}

// A coordinate of the window's lanes in a plane of tiles: how many tiles on, and where in that tile.
struct InTile {
  int tile, at;
  SN_INLINE InTile(int x, int size) : tile(x >= 0 ? x / size : -ceil_div(-x, size)), at(x - tile * size) {}
};

// Every lane's pixel is in the same place of some tile: a vector, or one of the lanes' neighbours.
inline bool copy_matching(const ConvSparseTiles& p) {
  const int down = p.src.down, across = p.src.across, h = p.src.h, w = p.src.w;
  float tile_y[lanes], tile_x[lanes];
  for (int i = 0; i < lanes; ++i)
    tile_y[i] = static_cast<float>(i / across), tile_x[i] = static_cast<float>(i % across);
  const Vf lane_y = load(tile_y), lane_x = load(tile_x);
  Finite finite;
  float* dst = p.dst;
  for (int i = 0; i < p.rows; ++i) {
    const InTile y(p.top + i, h);
    // At least zero where the lane's tile is one of the image.
    const auto inside = [](Vf lane, int shift, int count) {
      const Vf to = lane + set(static_cast<float>(shift));
      return at_most(to, set(static_cast<float>(count - 1)) - to);
    };
    const Vf rows = inside(lane_y, y.tile, down);
    const float* row = p.src.data + static_cast<ptrdiff_t>(y.at) * w * lanes + y.tile * across;
    for (int phase = 0; phase < p.phases; ++phase) {
      for (int q = 0; q < p.columns;) {
        const InTile x(p.left + phase + q * p.phases, w);
        int count = ceil_div(w - x.at, p.phases);  // columns of the same tiles
        if (count > p.columns - q) count = p.columns - q;
        const float* from = row + x.at * lanes + x.tile;
        const ptrdiff_t step = static_cast<ptrdiff_t>(p.phases) * lanes;
        if (y.tile == 0 && x.tile == 0) {
          for (int k = 0; k < count; ++k, from += step, dst += lanes) {
            const Vf values = load(from);
            finite.see(values);
            store(dst, values);
          }
        } else {
          const Vm some = le(zero(), at_most(rows, inside(lane_x, x.tile, across)));
          for (int k = 0; k < count; ++k, from += step, dst += lanes) {
            const Vf values = load_some(from, some);
            finite.see(values);
            store(dst, select(some, values, set(p.outside)));
          }
        }
        q += count;
      }
    }
  }
  return finite.all();
}

// Lane by lane: where the tiles of input and output do not match.
inline bool copy_lanes(const ConvSparseTiles& p) {
  Finite finite;
  float* dst = p.dst;
  for (int i = 0; i < p.rows; ++i) {
    for (int phase = 0; phase < p.phases; ++phase) {
      for (int q = 0; q < p.columns; ++q, dst += lanes) {
        for (int lane = 0; lane < lanes; ++lane) {
          const int y = lane / p.across * p.step_h + p.top + i;
          const int x = lane % p.across * p.step_w + p.left + phase + q * p.phases;
          dst[lane] = p.outside;
          if (y < 0 || y >= p.h || x < 0 || x >= p.w) continue;
          const ptrdiff_t pixel = static_cast<ptrdiff_t>(y % p.src.h) * p.src.w + x % p.src.w;
          dst[lane] = p.src.data[pixel * lanes + y / p.src.h * p.src.across + x / p.src.w];
        }
        finite.see(load(dst));
      }
    }
  }
  return finite.all();
}

inline bool copy_tiles(const ConvSparseTiles& p) {
  // Lanes outside the image hold zero.
  const bool whole = p.src.h * p.src.down == p.h && p.src.w * p.src.across == p.w;
  const bool matching =
      p.src.across == p.across && p.src.h == p.step_h && p.src.w == p.step_w && (whole || p.outside == 0);
  return matching ? copy_matching(p) : copy_lanes(p);
}

}  // namespace conv_sparse
}  // namespace softneuro::SN_ISA
