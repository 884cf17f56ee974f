// Where the parts of a block of tiles are, and the products of one. See winograd.h and generic.h.
#pragma once

#include "base/lines.h"
#include "kernels/integers.h"
#include "kernels/winograd/products.h"
#include "kernels/winograd/tile.h"
#include "kernels/winograd/winograd.h"

namespace softneuro::SN_ISA {
namespace winograd {

// The positions of an axis that share weight i: begin[i] to begin[i + 1].
struct Sharing {
  int weights = 0;
  int begin[winograd_max_axis + 1];

  SN_INLINE explicit Sharing(const WinogradAxis& axis, int positions) : weights(axis.weights()) {
    for (int i = positions - 1; i >= 0; --i) begin[axis.weight_of(i)] = i;
    begin[weights] = positions;
  }
};

// Floats from a block of a tile's decoded sums to the next, the same for all tiles: an odd number of lines.
constexpr int sums_of_block = max_tile * max_tile * lanes + 16;

// Where things are; strides in floats.
struct Plan {
  // A chunk is a part of L2: small enough to stay there, with so many channels that few sums are taken up again.
  static constexpr size_t chunk_bytes = 256 << 10;

  // Input blocks whose taps are turned and weighed together: they stay in L1, and sums are seldom taken up again.
  static constexpr int turned_blocks = lanes < 32 ? 32 / lanes : 1;

  int in_blocks, out_blocks;  // of a group
  int chunk;                  // channel blocks whose weights are transformed together; 0: all are, ahead
  size_t src_plane, dst_plane;
  size_t encoded_position, product_position, passing_weight;
  size_t floats;  // of all these
  float *encoded, *product, *passing, *taps, *weighed, *tile, *sums;
  float *start, *scale;  // with adds: of each position's tiles
  int terms;             // floats from position to position of these
  Sharing across_rows, along_rows;

  Plan(const WinogradShape& s, int block, void* scratch = nullptr)
      : across_rows(s.across_rows(), s.positions_h()), along_rows(s.along_rows(), s.positions_w()) {
    in_blocks = ceil_div(s.in_channels, lanes);
    out_blocks = ceil_div(s.out_channels, lanes);
    src_plane = static_cast<size_t>(s.h) * s.w * lanes;
    dst_plane = static_cast<size_t>(s.out_h) * s.out_w * lanes;
    encoded_position = odd_lines(static_cast<size_t>(in_blocks) * block * lanes);
    product_position = odd_lines(static_cast<size_t>(winograd_panel) * block * lanes);
    const size_t of_block = static_cast<size_t>(winograd_panel) * lanes * lanes;
    chunk = s.in_passing ? static_cast<int>(chunk_bytes / (s.weights() * of_block * sizeof(float))) : 0;
    if (s.in_passing) chunk = ceil_div(in_blocks, ceil_div(in_blocks, chunk < 1 ? 1 : chunk));
    passing_weight = s.in_passing ? odd_lines(chunk * of_block) : 0;
    floats = 0;
    const auto place = [&](size_t size) {
      float* at = static_cast<float*>(scratch) + floats;
      floats += odd_lines(size);
      return at;
    };
    encoded = place(s.positions() * encoded_position);
    product = place(s.positions() * product_position);
    passing = place(s.weights() * passing_weight);
    taps = place(s.in_passing ? static_cast<size_t>(turned_blocks) * s.kernel_h * s.kernel_w * lanes * lanes : 0);
    weighed = place(s.in_passing ? static_cast<size_t>(turned_blocks) * 2 * s.kernel_w * lanes * lanes : 0);
    tile = place(static_cast<size_t>(s.positions()) * lanes);
    sums = place(s.bytes ? static_cast<size_t>(winograd_panel) * sums_of_block : 0);
    terms = s.adds ? round_up(block, lanes) : 0;
    start = place(static_cast<size_t>(s.positions()) * terms);
    scale = place(static_cast<size_t>(s.positions()) * terms);
  }
};

// The weights of some channel blocks for one panel.
struct Weights {
  const float* at;  // [weight][channel][lane of panel]
  size_t weight;
  int first, blocks;
  // What is read next, of which the products of each weight fetch so many floats into L2, at an even rate: out of L3 or
  // memory all of a weight's lines at once would keep its first products waiting.
  const float* next;
  int fetch;
};
inline void multiply_block(const Plan& plan, const Weights& weights, int panel, int count) {
  const int groups = ceil_div(count, max_group), length = count / groups, longer = count % groups;
  const Sharing &rows = plan.across_rows, &columns = plan.along_rows;
  const int positions_w = columns.begin[columns.weights];
  Product p;
  p.blocks = weights.blocks;
  p.add = weights.first > 0;
  p.src_block = static_cast<size_t>(count) * lanes;
  p.weights = weights.at;
  p.fetch = ceil_div(weights.fetch, weights.blocks * lanes * groups);
  const auto multiply = [&](int position) {
    p.src = plan.encoded + position * plan.encoded_position + weights.first * p.src_block;
    p.dst = plan.product + position * plan.product_position;
    for (int i = 0; i < groups; ++i) {
      const int tiles = length + (i < longer ? 1 : 0);
      products.multiply[panel][tiles][i == 0](p);
      p.src += tiles * lanes;
      p.dst += tiles * panel * lanes;
      p.next += static_cast<ptrdiff_t>(weights.blocks) * lanes * p.fetch;
    }
  };
  const float* next = weights.next;
  for (int i = 0; i < rows.weights; ++i) {
    for (int j = 0; j < columns.weights; ++j, p.weights += weights.weight, next += weights.fetch) {
      p.next = next;
      for (int y = rows.begin[i]; y < rows.begin[i + 1]; ++y) {
        for (int x = columns.begin[j]; x < columns.begin[j + 1]; ++x) multiply(y * positions_w + x);
      }
    }
  }
}

}  // namespace winograd
}  // namespace softneuro::SN_ISA
