// Products of few tiles: weights are transformed on the way from the taps to the multiplications, and all that is ever
// stored of them is what two rows of positions need of some channels. See winograd.h.
#pragma once

#include "kernels/winograd/weights.h"
#include "simd/hold.h"

namespace softneuro::SN_ISA {
namespace winograd {

// Maps of up to twice the tile, as the last layers of networks for images have.
constexpr int few_tiles = 4, few_taps = 3;
constexpr int few_least = 5, few_most = 9;                 // positions of a row
constexpr int few_sums = registers - 12;                   // the rest is for weights
constexpr bool has_few_tiles = few_sums >= 2 * few_tiles;  // both positions of +-p of all tiles, in one turn

// A row whose sums need more registers than there are is gone through in turns, each of whole points 0, +-p, infinity.
struct FewTurns {
  int count = 0;
  int begin[few_most + 1] = {};
};
constexpr FewTurns few_turns(int positions, int tiles) {
  const int limit = few_sums / tiles, least = (positions + limit - 1) / limit;
  const int target = (positions + least - 1) / least;
  FewTurns turns;
  for (int at = winograd_points(positions).zero, size = at; at < positions;) {
    const int unit = at + 1 < positions ? 2 : 1;
    if (size > 0 && (size >= target || size + unit > limit)) turns.begin[++turns.count] = at, size = 0;
    at += unit, size += unit;
  }
  turns.begin[++turns.count] = positions;
  return turns;
}

constexpr bool turns_are_whole() {
  for (int positions = few_least; positions <= few_most; ++positions) {
    for (int tiles = 1; tiles <= few_tiles; ++tiles) {
      const FewTurns turns = few_turns(positions, tiles);
      for (int i = 0; i < turns.count; ++i) {
        const int size = turns.begin[i + 1] - turns.begin[i];
        if (size < 1 || size * tiles > few_sums) return false;
      }
      if (turns.begin[turns.count] != positions) return false;
    }
  }
  return true;
}
static_assert(!has_few_tiles || turns_are_whole());

// Floats of what comes next that are fetched per channel and turn, so that all of it has been after the last turn: a
// number of half vectors.
constexpr int few_fetched(int positions, int tiles) {
  const int of_all_rows = positions * few_turns(positions, tiles).count;
  return (2 * few_taps * few_taps + of_all_rows - 1) / of_all_rows * (lanes / 2);
}

// Rows `row`, of point +p, and the next, of -p, of G, down the columns of taps: [channel][row][column][lane].
template <int positions, int row>
[[gnu::flatten]] void weigh_rows(const float* taps, int channels, float* to) {
  for (int c = 0; c < channels; ++c, taps += few_taps * few_taps * lanes, to += 2 * few_taps * lanes) {
    unroll<few_taps>([&](int s) {
      Vf g[few_taps];
      unroll<few_taps>([&](int r) { g[r] = load(taps + (r * few_taps + s) * lanes); });
      const Vf even = weigh<positions, few_taps, row, 0>(g), odd = weigh<positions, few_taps, row, 1>(g);
      store(to + s * lanes, even + odd);
      store(to + (few_taps + s) * lanes, even - odd);
    });
  }
}

struct FewTiles {
  const float* src;  // [block][tile][lane] of the row's first position
  size_t src_position, src_block;
  const float* weighed;  // of the row: [column][lane] for each channel
  int channel;           // floats from channel to channel
  int blocks;
  bool add;    // to dst; else dst is overwritten
  float* dst;  // [position][tile]
  size_t dst_position, dst_tile;
  const float* next;  // what will be read soon
};

template <int positions, int tiles, int turn>
[[gnu::flatten]] void multiply_few(const FewTiles& p) {
  constexpr FewTurns turns = few_turns(positions, tiles);
  constexpr int begin = turns.begin[turn], end = turns.begin[turn + 1], zero_points = winograd_points(positions).zero;
  constexpr int fetched = few_fetched(positions, tiles), line = 16;
  constexpr int sums = (end - begin) * tiles;
  const auto place = [dst = p.dst + begin * p.dst_position, &p](int i) {
    return dst + i / tiles * p.dst_position + i % tiles * p.dst_tile;
  };
  Vf sum[sums];
  if (p.add) {
    unroll<sums>([&](int i) { sum[i] = load(place(i)); });
  } else {
    unroll<sums>([&](int i) { sum[i] = zero(); });
  }
  const float *src = p.src + begin * p.src_position, *from = p.weighed, *next = p.next;
  for (int cb = 0; cb < p.blocks; ++cb, src += p.src_block) {
    for (int lane = 0; lane < lanes; ++lane, from += p.channel, next += fetched) {
      const auto multiply = [&](auto position, Vf u) {
        const float* x = src + (position - begin) * p.src_position + lane;
        u = hold(u);
        unroll<tiles>([&](auto t) {
          constexpr int at = (decltype(position)::value - begin) * tiles + decltype(t)::value;
          sum[at] = fma(set(x[t * lanes]), u, sum[at]);
        });
      };
      Vf g[few_taps];
      unroll<few_taps>([&](int s) { g[s] = load(from + s * lanes); });
      unroll<(fetched + line - 1) / line>([&](int i) {
        prefetch_l2(next + i * line);
        in_order();  // a lambda of a prefetch alone would be dropped as one without effect
      });
      if constexpr (begin == 0 && zero_points != 0) multiply(Index<0>(), g[0]);
      unroll<(end - begin) / 2>([&](auto i) {
        constexpr int plus = begin + (begin == 0 ? zero_points : 0) + 2 * decltype(i)::value;
        if constexpr (plus + 1 < end) {
          const Vf even = weigh<positions, few_taps, plus, 0>(g), odd = weigh<positions, few_taps, plus, 1>(g);
          multiply(Index<plus>(), even + odd);
          multiply(Index<plus + 1>(), even - odd);
        }
      });
      if constexpr (end == positions) multiply(Index<positions - 1>(), g[few_taps - 1]);
    }
  }
  unroll<sums>([&](int i) { store(place(i), sum[i]); });
}

// All that depends on the positions is made at compile time: transform.h.
struct FewTable {
  static constexpr int sizes = few_most - few_least + 1;
  int zero[sizes] = {};  // whether point 0 is among them
  void (*weigh[sizes][few_most])(const float*, int, float*) = {};
  struct Kernels {
    int turns = 0, fetched = 0;
    void (*multiply[few_most])(const FewTiles&) = {};
  } of_tiles[sizes][few_tiles];  // less one
};
constexpr FewTable few_table() {
  FewTable table;
  if constexpr (has_few_tiles) {
    unroll<FewTable::sizes>([&](auto size) {
      constexpr int positions = few_least + decltype(size)::value;
      constexpr WinogradPoints points = winograd_points(positions);
      table.zero[size] = points.zero;
      unroll<points.pairs>([&](auto i) {
        constexpr int row = points.zero + 2 * decltype(i)::value;
        table.weigh[size][row] = weigh_rows<positions, row>;
      });
      unroll<few_tiles>([&](auto t) {
        constexpr int tiles = decltype(t)::value + 1, turns = few_turns(positions, tiles).count;
        FewTable::Kernels& kernels = table.of_tiles[size][t];
        kernels.turns = turns, kernels.fetched = few_fetched(positions, tiles);
        unroll<turns>([&](auto turn) { kernels.multiply[turn] = multiply_few<positions, tiles, turn>; });
      });
    });
  }
  return table;
}
constexpr FewTable few = few_table();

}  // namespace winograd
}  // namespace softneuro::SN_ISA
