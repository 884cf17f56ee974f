// Windows of the input as conv_sparse reads them: padding in place, columns sorted by phase.
#pragma once

#include "kernels/conv_sparse/conv_sparse.h"
#include "kernels/integers.h"
#include "kernels/unroll.h"
#include "simd/some.h"

namespace softneuro::SN_ISA {
namespace conv_sparse {

// What is copied in one go: as many sums of what is not finite hide the latency of one.
constexpr int copied = 4;

// Zeros or, where a value is not finite, NaN: sums of all of them times zero.
struct Finite {
  Vf sum[copied] = {zero(), zero(), zero(), zero()};
  float rest = 0;
  SN_INLINE void see(Vf x, int i = 0) { sum[i] = fma(x, zero(), sum[i]); }
  SN_INLINE void see(float x) { rest += x * 0; }
  SN_INLINE bool all() const { return !any(is_nan((sum[0] + sum[1]) + (sum[2] + sum[3]))) && rest == 0; }
};

// So many vectors, `step` floats apart, to neighbours.
SN_INLINE void copy_vectors(const float* from, ptrdiff_t step, int count, float* to, Finite& finite) {
  for (; count >= copied; count -= copied) {
    unroll<copied>([&](auto i) {
      const Vf values = load(from + i * step);
      finite.see(values, i);
      store(to + i * lanes, values);
    });
    from += copied * step, to += copied * lanes;
  }
  for (; count > 0; --count, from += step, to += lanes) {
    const Vf values = load(from);
    finite.see(values);
    store(to, values);
  }
}

inline void copy_row(const ConvSparsePlane& p, const float* src, float* dst, Finite& finite) {
  for (int phase = 0; phase < p.phases; ++phase, dst += p.columns) {
    const int x = phase + p.left;  // of column 0
    int begin = x >= 0 ? 0 : ceil_div(-x, p.phases), end = x >= p.w ? 0 : ceil_div(p.w - x, p.phases);
    if (end > p.columns) end = p.columns;
    if (begin > end) begin = end;
    int q = 0;
    for (; q < begin; ++q) dst[q] = 0.0f;
    if (p.phases == 1) {
      const int vectors = (end - q) / lanes;
      copy_vectors(src + x + q, lanes, vectors, dst + q, finite);
      q += vectors * lanes;
      if (q < end) {
        const Vf values = load_n(src + x + q, end - q);
        finite.see(values);
        store_n(dst + q, values, end - q);
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

// Vectors of a window, one after the other, that are `step` floats apart in the plane. `some`: the lanes whose tile is
// one of the image; not `whole`: with others.
struct Stretch {
  ptrdiff_t from;
  int count;
  bool whole;
  Vm some;
};

// Returns where what follows goes.
SN_INLINE float* copy_stretch(const Stretch& s, const float* src, ptrdiff_t step, Vf outside, float* dst,
                              Finite& finite) {
  if (s.whole) {
    copy_vectors(src + s.from, step, s.count, dst, finite);
    return dst + s.count * lanes;
  }
  const float* from = src + s.from;
  for (int k = 0; k < s.count; ++k, from += step, dst += lanes) {
    const Vf values = load_some(from, s.some);
    finite.see(values);
    store(dst, select(s.some, values, outside));
  }
  return dst;
}

// Every lane's pixel is in the same place of some tile: a vector, or one of the lanes' neighbours. What is found out
// about a row serves all channels.
inline bool copy_matching(const ConvSparseTiles& p) {
  constexpr int most = 64;
  const int down = p.src.down, across = p.src.across, h = p.src.h, w = p.src.w;
  const ptrdiff_t step = static_cast<ptrdiff_t>(p.phases) * lanes;
  const Vf outside = set(p.outside);
  float tile_y[lanes], tile_x[lanes];
  for (int i = 0; i < lanes; ++i)
    tile_y[i] = static_cast<float>(i / across), tile_x[i] = static_cast<float>(i % across);
  const Vf lane_y = load(tile_y), lane_x = load(tile_x);
  Stretch stretches[most];
  int count = 0;
  ptrdiff_t done = 0, waiting = 0;  // vectors of a channel's window
  Finite finite;
  const auto copy = [&] {
    for (int c = 0; c < p.channels; ++c) {
      const float* src = p.src.data + c * p.src_channel;
      float* dst = p.dst + c * p.dst_channel + done * lanes;
      for (int i = 0; i < count; ++i) dst = copy_stretch(stretches[i], src, step, outside, dst, finite);
    }
    done += waiting;
    count = 0, waiting = 0;
  };
  for (int i = 0; i < p.rows; ++i) {
    const InTile y(p.top + i, h);
    // At least zero where the lane's tile is one of the image.
    const auto inside = [](Vf lane, int shift, int tiles) {
      const Vf to = lane + set(static_cast<float>(shift));
      return at_most(to, set(static_cast<float>(tiles - 1)) - to);
    };
    const Vf rows = inside(lane_y, y.tile, down);
    const ptrdiff_t row = (static_cast<ptrdiff_t>(y.at) * w * lanes) + y.tile * across;
    for (int phase = 0; phase < p.phases; ++phase) {
      for (int q = 0; q < p.columns;) {
        const InTile x(p.left + phase + q * p.phases, w);
        int vectors = ceil_div(w - x.at, p.phases);  // of the same tiles
        if (vectors > p.columns - q) vectors = p.columns - q;
        stretches[count++] = {row + x.at * lanes + x.tile, vectors, y.tile == 0 && x.tile == 0,
                              le(zero(), at_most(rows, inside(lane_x, x.tile, across)))};
        q += vectors;
        waiting += vectors;
        if (count == most) copy();
      }
    }
  }
  copy();
  return finite.all();
}

// Where the lanes of a window's vector are in the plane; negative: outside the image.
struct Picked {
  int from[lanes];
};

SN_INLINE Picked pick(const ConvSparseTiles& p, int top, int left) {
  Picked picked;
  for (int lane = 0; lane < lanes; ++lane) {
    const int y = lane / p.across * p.step_h + top, x = lane % p.across * p.step_w + left;
    picked.from[lane] = -1;
    if (y < 0 || y >= p.h || x < 0 || x >= p.w) continue;
    const int pixel = y % p.src.h * p.src.w + x % p.src.w, tile = y / p.src.h * p.src.across + x / p.src.w;
    picked.from[lane] = pixel * lanes + tile;
  }
  return picked;
}

// Lane by lane: where the tiles of input and output do not match. What is found out serves all channels.
inline bool copy_lanes(const ConvSparseTiles& p) {
  constexpr int most = 32;
  Picked list[most];
  int count = 0;
  ptrdiff_t done = 0;
  Finite finite;
  const auto copy = [&] {
    for (int c = 0; c < p.channels; ++c) {
      const float* src = p.src.data + c * p.src_channel;
      float* dst = p.dst + c * p.dst_channel + done * lanes;
      for (int i = 0; i < count; ++i, dst += lanes) {
        for (int l = 0; l < lanes; ++l) {
          const int from = list[i].from[l];
          dst[l] = from >= 0 ? src[from] : p.outside;
        }
        finite.see(load(dst));
      }
    }
    done += count;
    count = 0;
  };
  for (int i = 0; i < p.rows; ++i) {
    for (int phase = 0; phase < p.phases; ++phase) {
      for (int q = 0; q < p.columns; ++q) {
        list[count++] = pick(p, p.top + i, p.left + phase + q * p.phases);
        if (count == most) copy();
      }
    }
  }
  copy();
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
