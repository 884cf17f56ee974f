#include "layers/products/bfloat16_cost.h"

#include <algorithm>

#include "kernels/integers.h"

namespace softneuro {
namespace {

constexpr int tile_rows = 16, most_tiles = 4;  // that sums are in
constexpr int most_depth = 1024;               // channels whose rows fill L2 before sums' passing by costs more

// Bytes of the split input that one more row of a band takes.
int64_t row_bytes(const ConvBfloat16Shape& s, int block) {
  const int64_t pixels = int64_t{s.x.samples(s.x.out)} * s.x.phases() * s.y.phases();
  return pixels * round_up(s.in_channels, 2 * block) * 2 * s.parts;
}

// Rows of a band that fill two tiles where an image is one column.
int least_rows(const ConvBfloat16Shape& s) { return s.x.out == 1 ? 2 * tile_rows : 1; }

// Rows of a band whose split input has so many bytes. Where an image is one column, all but the last fill their tiles.
int rows_within(const ConvBfloat16Shape& s, int block, int64_t bytes) {
  const int64_t all = bytes / std::max<int64_t>(row_bytes(s, block), 1);
  const int64_t most = std::max(s.y.out, 1), least = least_rows(s);
  const int64_t own = std::max<int64_t>(all - s.y.offset(s.y.kernel - 1), least);
  return static_cast<int>(std::min(own / least * least, most));
}

}  // namespace

size_t bfloat16_least_bytes(const ConvBfloat16Shape& s, int block) {
  return static_cast<size_t>(row_bytes(s, block) * s.y.samples(least_rows(s)));
}

bool bfloat16_promises(Isa isa, const ConvBfloat16Shape& s, int block) {
  return isa == Isa::amx && s.in_channels >= block && 2 * s.x.out * s.y.out >= tile_rows;
}

std::vector<Bfloat16Params> bfloat16_choices(const ConvBfloat16Shape& s, int block, int split, int threads) {
  constexpr int pair = 2, single = 1;
  // A band's split input stays in L2 while all weights pass by, or in L1 while they come from L2.
  const int64_t l2 = l2_bytes() / 2;
  const auto l1 = static_cast<int64_t>(std::max<size_t>(caches().l1d, 32 << 10) * 3 / 4);
  const int many = rows_within(s, block, l2), few = rows_within(s, block, l1);
  std::vector<Bfloat16Params> list{{many, split, pair, 0}};
  if (few != many) list.push_back({few, split, pair, 0});
  if (threads > 1) list.push_back({many, 1 - split, pair, 0});
  // So many channels that few rows of them fit, and all weights would pass by for these.
  ConvBfloat16Shape part = s;
  const int depths = std::max(ceil_div(s.in_channels, most_depth), 1);
  part.in_channels = round_up(ceil_div(s.in_channels, depths), 2 * block);
  const int rows = rows_within(part, block, l2);
  if (part.in_channels < s.in_channels && many < s.y.out && rows >= 2 * many) {
    list.push_back({rows, split, pair, part.in_channels});
  }
  // So few outputs that tiles hold the sums of them all: weights pass by once.
  if (s.x.samples(s.x.out) * s.y.out <= most_tiles * tile_rows) list.push_back({many, split, single, 0});
  return list;
}

}  // namespace softneuro
