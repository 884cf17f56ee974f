// A plan tells how much a block of tiles needs, and where that is in scratch memory. See generic.h.
#pragma once

#include "base/lines.h"
#include "kernels/integers.h"
#include "kernels/winograd_int16/winograd_int16.h"
#include "simd/pairs.h"

namespace softneuro::SN_ISA {
namespace winograd_int16 {

constexpr int channels = 2 * lanes;  // of an input block
// Without sums of pairs in one instruction g++ 12 spills sums of 14 tiles.
constexpr int max_group = registers < 32 ? 6 : SN_LEVEL == SN_LEVEL_avx512vnni ? 14 : 13;
constexpr int max_tile = 4, max_positions = max_tile + 2;
// Floats from a block of a tile's decoded sums to the next: an odd number of lines.
constexpr int sums_of_block = max_tile * max_tile * lanes + 16;
// Input blocks whose products are summed in integers.
constexpr int chunk = winograd_int16_chunk / channels;

struct Plan {
  int in_blocks, out_blocks;  // of a group
  size_t encoded_position, product_position, floats = 0;
  float *encoded, *product, *tile, *sums;

  Plan(const WinogradShape& s, int block, void* scratch = nullptr)
      : in_blocks(ceil_div(s.in_channels, channels)), out_blocks(ceil_div(s.out_channels, lanes)) {
    encoded_position = odd_lines(static_cast<size_t>(in_blocks) * block * lanes);
    product_position = odd_lines(static_cast<size_t>(winograd_panel) * block * lanes);
    const auto place = [&](size_t size) {
      float* at = static_cast<float*>(scratch) + floats;
      floats += odd_lines(size);
      return at;
    };
    encoded = place(s.positions() * encoded_position);
    product = place(s.positions() * product_position);
    tile = place(static_cast<size_t>(s.positions()) * lanes);
    sums = place(static_cast<size_t>(winograd_panel) * sums_of_block);
  }
};

SN_INLINE Halves load_halves(const float* p) {
  Halves x;
  __builtin_memcpy(&x, p, sizeof x);
  return x;
}
SN_INLINE void store_halves(float* p, Halves x) { __builtin_memcpy(p, &x, sizeof x); }

}  // namespace winograd_int16
}  // namespace softneuro::SN_ISA
