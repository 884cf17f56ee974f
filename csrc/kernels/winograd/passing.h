// Products with weights that are transformed in passing, from packed taps or from the model's rows. See winograd.h and
// generic.h.
#pragma once

#include "kernels/integers.h"
#include "kernels/turn_rows.h"
#include "kernels/winograd/few_tiles.h"
#include "kernels/winograd/multiply_block.h"
#include "kernels/winograd/weights.h"

namespace softneuro::SN_ISA {
namespace winograd {

inline bool can_pass(const WinogradShape& s) {
  return s.kernel_h == s.kernel_w && s.tile_h == s.tile_w && s.stride_h == s.stride_w && s.kernel_h > 1 &&
         has_transform(s.tile_h, s.kernel_h, s.stride_h);
}

inline bool is_few(const WinogradShape& s, int count) {
  return has_few_tiles && count <= few_tiles && s.stride_h == 1 && s.kernel_h == few_taps &&
         s.positions_h() >= few_least && s.positions_h() <= few_most;
}

// Where the taps of a panel are: packed, as [output block][input channel][tap][lane], or in the model's rows.
struct Taps {
  const WinogradArgs& args;
  int first_channel, channels;  // output channels of the panel
  bool last;                    // of its task
  int taps = args.shape.kernel_h * args.shape.kernel_w;
  ptrdiff_t row = static_cast<ptrdiff_t>(args.shape.in_channels) * taps;
  ptrdiff_t packed_block = static_cast<ptrdiff_t>(round_up(args.shape.in_channels, lanes)) * taps * lanes;

  // First float of an output block; blocks follow each other in memory.
  SN_INLINE const float* block(int b) const {
    return args.rows.weights != nullptr ? args.rows.weights + (first_channel + b * lanes) * row
                                        : args.weights + (first_channel / lanes + b) * packed_block;
  }
  // What is read next, or null.
  SN_INLINE const float* after(int b) const { return last && (b + 1) * lanes >= channels ? nullptr : block(b + 1); }
  // Input channels [first, first + count) of output block b, as [channel][tap][lane]: turned to scratch if not packed.
  SN_INLINE const float* get(int b, int first, int count, float* scratch) const {
    if (args.rows.weights == nullptr) return block(b) + static_cast<ptrdiff_t>(first) * taps * lanes;
    const int channel = first_channel + b * lanes, rows = channels - b * lanes;
    const int left = args.shape.in_channels - first, real = (left < count ? left : count) * taps;
    turn_rows(block(b) + static_cast<ptrdiff_t>(first) * taps, row, rows < lanes ? rows : lanes, real,
              args.rows.factors == nullptr ? nullptr : args.rows.factors + channel,
              [&](int i) __attribute__((always_inline)) { return scratch + i * lanes; });
    for (int i = real; i < count * taps; ++i) store(scratch + i * lanes, zero());
    return scratch;
  }
};

inline void pack_taps(const WinogradShape& s, const WeightRows& rows, float* packed) {
  WinogradArgs args{};
  args.shape = s;
  args.rows = rows;
  const int in_channels = round_up(s.in_channels, lanes);
  for (int group = 0; group < s.groups; ++group) {
    const Taps taps{args, group * s.out_channels, s.out_channels, true};
    for (int b = 0; b < ceil_div(s.out_channels, lanes); ++b, packed += taps.packed_block) {
      taps.get(b, 0, in_channels, packed);
    }
  }
}

// Chunk by chunk of transformed weights, which L2 holds. Together they fetch the taps of the next panel.
inline void multiply_passing(const Plan& plan, const Taps& taps, int panel, int count) {
  const WinogradShape& s = taps.args.shape;
  const int weights = s.weights(), width = panel * lanes, per_block = taps.taps * lanes * width;
  const auto transform = passing.at[s.stride_h - 1][s.kernel_h - 1][s.tile_h - 1];
  const float* next = taps.after(panel - 1);
  Weights w{plan.passing, plan.passing_weight, 0, 0, next == nullptr ? plan.taps : next, 0};
  for (w.first = 0; w.first < plan.in_blocks; w.first += w.blocks) {
    const int left = plan.in_blocks - w.first;
    w.blocks = left < plan.chunk ? left : plan.chunk;
    for (int i = 0; i < w.blocks; ++i) {
      for (int b = 0; b < panel; ++b) {
        const float* from = taps.get(b, (w.first + i) * lanes, lanes, plan.taps);
        transform({from, lanes, plan.passing + (i * lanes * panel + b) * lanes, width, plan.passing_weight});
      }
    }
    w.fetch = next == nullptr ? 0 : round_up(ceil_div(w.blocks * per_block, weights), 16);
    multiply_block(plan, w, panel, count);
    if (next != nullptr) w.next += w.blocks * per_block;
  }
}

// Output block by output block. Packed taps fetch those of the next input channels, rows those of the next block.
inline void multiply_few_tiles(const Plan& plan, const Taps& taps, int panel, int count) {
  constexpr int row_taps = few_taps * lanes, channel_taps = few_taps * row_taps;
  const int positions = taps.args.shape.positions_h(), size = positions - few_least, zero_points = few.zero[size];
  const FewTable::Kernels& kernels = few.of_tiles[size][count - 1];
  const bool packed = taps.args.rows.weights == nullptr;
  FewTiles f;
  f.src_position = plan.encoded_position, f.src_block = static_cast<size_t>(count) * lanes;
  f.dst_position = plan.product_position, f.dst_tile = static_cast<size_t>(panel) * lanes;
  for (int b = 0; b < panel; ++b) {
    const float* next = taps.after(b);
    for (int first = 0; first < plan.in_blocks; first += f.blocks) {
      const int left = plan.in_blocks - first;
      f.blocks = left < Plan::turned_blocks ? left : Plan::turned_blocks;
      f.add = first > 0;
      const int channels = f.blocks * lanes;
      const float* from = taps.get(b, first * lanes, channels, plan.taps);
      const float* fetch = plan.taps;
      if (packed && (next != nullptr || left > f.blocks)) {
        fetch = from + channels * channel_taps;
      } else if (!packed && next != nullptr) {
        fetch = next + static_cast<ptrdiff_t>(first) * lanes * channel_taps;
      }
      const float* fetch_end = fetch + channels * channel_taps;
      const auto multiply = [&](int row, const float* weighed, int channel) {
        f.weighed = weighed, f.channel = channel;
        for (int turn = 0; turn < kernels.turns; ++turn) {
          const int at = row * positions;
          f.src = plan.encoded + at * f.src_position + first * f.src_block;
          f.dst = plan.product + at * f.dst_position + b * lanes;
          f.next = fetch < fetch_end ? fetch : plan.taps;
          kernels.multiply[turn](f);
          fetch += channels * kernels.fetched;
        }
      };
      if (zero_points > 0) multiply(0, from, channel_taps);
      for (int row = zero_points; row + 1 < positions; row += 2) {
        few.weigh[size][row](from, channels, plan.weighed);
        multiply(row, plan.weighed, 2 * row_taps);
        multiply(row + 1, plan.weighed + row_taps, 2 * row_taps);
      }
      multiply(positions - 1, from + 2 * row_taps, channel_taps);
    }
  }
}

}  // namespace winograd
}  // namespace softneuro::SN_ISA
